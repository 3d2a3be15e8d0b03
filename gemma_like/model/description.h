// A config's layers and its conversations' memory, for people and tools to read.
#ifndef INLAY_GEMMA_LIKE_MODEL_DESCRIPTION_H_
#define INLAY_GEMMA_LIKE_MODEL_DESCRIPTION_H_

#include <string>
#include <vector>

#include "cache/cache_bytes.h"

namespace inlay {

struct LayerDescription {
  std::string mixer;  // "sliding attention 64: 4 heads of 64, 2 kv"; several with " + " between
  std::string mlp;    // "gated mlp 640"
  CacheBytes cache;
};

struct ConfigDescription {
  std::vector<LayerDescription> layers;
  CacheBytes cache;  // of all layers
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_DESCRIPTION_H_
