// What a conversation may take.
#ifndef INLAY_CACHE_CACHE_OPTIONS_H_
#define INLAY_CACHE_CACHE_OPTIONS_H_

#include <cstddef>
#include <memory>

namespace inlay {

class BlockPool;

struct CacheOptions {
  // The longest conversation, in tokens.
  size_t max_length = 4096;
  // Where blocks come from; a pool of its own without limit if null. Caches that share a pool share
  // its limit.
  std::shared_ptr<BlockPool> pool = nullptr;
  // Tokens of a saved conversation must be below it; 0: the config's. Engine::CreateCache sets it
  // to what the model's file has.
  size_t vocab_size = 0;
};

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_OPTIONS_H_
