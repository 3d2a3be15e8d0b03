// What determines the bits that a model computes, besides its config.
#ifndef INLAY_CACHE_MODEL_IDENTITY_H_
#define INLAY_CACHE_MODEL_IDENTITY_H_

#include <cstdint>
#include <string>

namespace inlay {

struct ModelIdentity {
  uint64_t weights_hash = 0;         // of all weights; see gemma_like/files/weights_hash.h
  uint32_t numerics_version = 0;     // see gemma_like/numerics.h
  std::string instruction_set = {};  // see ChosenArithmetic in ops/cpu/cpu_target.h: "AVX3"
};

}  // namespace inlay

#endif  // INLAY_CACHE_MODEL_IDENTITY_H_
