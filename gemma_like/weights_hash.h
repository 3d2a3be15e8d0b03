// A number that tells models' weights apart.
#ifndef INLAY_GEMMA_LIKE_WEIGHTS_HASH_H_
#define INLAY_GEMMA_LIKE_WEIGHTS_HASH_H_

#include <cstdint>

#include "io/gguf.h"

namespace inlay {

// Of the names, types and shapes of a file's tensors and of samples of their bytes: reading all of
// them would take as long as reading the model. Two trainings, or two quantizations of one, differ
// everywhere and so in the samples; a file in which somebody changed a few bytes by hand may not.
// Of a packed file: what it was for the file that it was made from.
uint64_t WeightsHash(const GgufFile& file);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_WEIGHTS_HASH_H_
