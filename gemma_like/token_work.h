// How much a model has to read, compute and gather for a token, to compare speeds with the limits
// of machines and networks.
#ifndef INLAY_GEMMA_LIKE_TOKEN_WORK_H_
#define INLAY_GEMMA_LIKE_TOKEN_WORK_H_

#include <cstddef>

namespace inlay {

// Of one matrix or several, at one of the ranks that compute a model together.
struct TokenWork {
  double bytes = 0;  // of weights
  double ops = 0;    // for each token, a multiplication and an addition counting as two
  // What ranks gather: how often in a pass, whatever the number of its tokens, and how many bytes
  // the parts of all ranks together have for each token.
  size_t collectives = 0;
  double gathered = 0;

  TokenWork& operator+=(const TokenWork& other) {
    bytes += other.bytes;
    ops += other.ops;
    collectives += other.collectives;
    gathered += other.gathered;
    return *this;
  }
};

struct ModelWork {
  TokenWork layers;  // of each token
  TokenWork output;  // of each whose logits are asked for
};

// What one of the ranks that compute a model holds and does, before anything is loaded.
struct PlannedWork : ModelWork {
  double weights = 0;     // bytes of memory for them
  double cache = 0;       // bytes of memory for a conversation with rows of kDefaultKvType
  double cache_read = 0;  // bytes of it that a token reads
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_TOKEN_WORK_H_
