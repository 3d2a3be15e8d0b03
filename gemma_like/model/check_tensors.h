// Finds weights that are NaN or infinite.
#ifndef INLAY_GEMMA_LIKE_MODEL_CHECK_TENSORS_H_
#define INLAY_GEMMA_LIKE_MODEL_CHECK_TENSORS_H_

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "base/progress.h"
#include "io/gguf/gguf.h"
#include "ops/team.h"

namespace inlay {

// Reads every element of every tensor. DataLoss naming the tensor, the element and its value where
// one is NaN or infinite (of a packed and quantized matrix, the row); the first in file order.
// Costs about as much time as a load. `progress` counts the bytes of tensors.
absl::Status CheckTensors(const GgufFile& file, Team& team, const Progress& progress = nullptr);

// "element [3, 17]": the column, the row, and so on, in the order in which the file gives
// dimensions.
std::string ElementName(const GgufTensor& tensor, size_t row, size_t column);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_CHECK_TENSORS_H_
