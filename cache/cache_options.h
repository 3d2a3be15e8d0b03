// The limits of a conversation's cache.
#ifndef INLAY_CACHE_CACHE_OPTIONS_H_
#define INLAY_CACHE_CACHE_OPTIONS_H_

#include <cstddef>
#include <memory>

namespace inlay {

class BlockPool;

struct CacheOptions {
  // The longest conversation, in tokens.
  size_t max_length = 4096;
  // The pool to allocate blocks from; null: a new pool without a limit. Caches that share a pool
  // share its limit.
  std::shared_ptr<BlockPool> pool = nullptr;
  // Token ids of a saved conversation must be below it; 0: the config's vocabulary size.
  // Engine::CreateCache sets it to the vocabulary size of the model's file.
  size_t vocab_size = 0;
};

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_OPTIONS_H_
