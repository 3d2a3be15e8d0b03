#include "gemma_like/check_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/dequantize.h"
#include "ops/softmax.h"
#include "ops/views.h"

namespace inlay {
namespace {

// "[3, 17]": the column, the row, and so on, in the order in which the file gives dimensions.
std::string Position(const GgufTensor& tensor, size_t row, size_t column) {
  std::string text = absl::StrCat("[", column);
  for (size_t d = 1; d < tensor.n_dims; ++d) {
    absl::StrAppend(&text, ", ", row % tensor.dims[d]);
    row /= tensor.dims[d];
  }
  return text + "]";
}

}  // namespace

absl::Status CheckTensors(const GgufFile& file) {
  std::vector<float> values;
  for (const GgufTensor& tensor : file.tensors()) {
    const size_t cols = tensor.dims[0];
    const WeightMatrix matrix{.data = tensor.data.data(),
                              .type = tensor.type,
                              .rows = tensor.num_elements() / cols,
                              .cols = cols};
    values.resize(cols);
    for (size_t row = 0; row < matrix.rows; ++row) {
      DequantizeRow(matrix, row, values.data());
      if (AllFinite(values.data(), cols)) continue;
      const auto bad =
          std::find_if_not(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
      const auto column = static_cast<size_t>(bad - values.begin());
      return absl::DataLossError(absl::StrCat(file.name(), ": tensor '", tensor.name,
                                              "' has the value ", *bad, " at element ",
                                              Position(tensor, row, column)));
    }
  }
  return file.CheckWhole();
}

}  // namespace inlay
