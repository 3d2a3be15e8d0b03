#include "gemma_like/model/check_tensors.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "ops/first_row.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/operand.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/quant/dequantize.h"
#include "ops/row_kernels.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

std::string ElementName(const GgufTensor& tensor, size_t row, size_t column) {
  std::string text = absl::StrCat("element [", column);
  for (size_t d = 1; d < tensor.n_dims; ++d) {
    absl::StrAppend(&text, ", ", row % tensor.dims[d]);
    row /= tensor.dims[d];
  }
  return text + "]";
}

namespace {

absl::Status Damaged(const GgufFile& file, const GgufTensor& tensor, float value,
                     absl::string_view where) {
  return absl::DataLossError(absl::StrCat(file.name(), ": tensor '", tensor.name,
                                          "' has the value ", value, " at ", where));
}

// The index of the first value that is not finite; the number of values when all are.
size_t FirstBad(const std::vector<float>& values) {
  if (AllFinite(values.data(), values.size())) return values.size();
  return static_cast<size_t>(
      std::find_if_not(values.begin(), values.end(), [](float x) { return std::isfinite(x); }) -
      values.begin());
}

// `checked` is told the bytes that have been read, some megabytes at a time.
absl::Status CheckRows(const GgufFile& file, const GgufTensor& tensor, Team& team,
                       const std::function<void(uint64_t bytes)>& checked) {
  constexpr size_t kElementsAtATime = size_t{1} << 24;
  const size_t cols = tensor.dims[0];
  const WeightMatrix matrix{.data = tensor.data.data(),
                            .type = tensor.type,
                            .rows = tensor.num_elements() / cols,
                            .cols = cols};
  std::vector<std::vector<float>> scratch(team.threads(), std::vector<float>(cols));
  size_t first_bad = matrix.rows;  // row
  const Team::Region region(team);
  const size_t most = std::max<size_t>(1, kElementsAtATime / cols);
  for (size_t first = 0; first < matrix.rows && first_bad == matrix.rows; first += most) {
    const size_t count = std::min(most, matrix.rows - first);
    const size_t bad = FirstRow(team, count, cols, [&](size_t row, size_t thread) {
      std::vector<float>& values = scratch[thread];
      DequantizeRow(matrix, first + row, values.data());
      return FirstBad(values) < cols;
    });
    if (bad < count) first_bad = first + bad;
    checked(tensor.data.size() / matrix.rows * count);
  }
  if (first_bad == matrix.rows) return absl::OkStatus();
  std::vector<float>& values = scratch.front();
  DequantizeRow(matrix, first_bad, values.data());
  const size_t bad = FirstBad(values);
  return Damaged(file, tensor, values[bad], ElementName(tensor, first_bad, bad));
}

// Checks a packed matrix tile by tile. Matrices that are not quantized are stored column by column,
// bfloat16 in pairs of columns. For quantized ones, the sum of each row is checked: it is finite
// exactly when all elements are.
absl::Status CheckTiles(const GgufFile& file, const GgufTensor& tensor, Team& team) {
  const size_t cols = tensor.dims[0];
  const size_t tiles = (tensor.dims[1] + kTileRows - 1) / kTileRows;
  const size_t total = tensor.dims[2] * tensor.dims[3] * tiles;
  const bool quantized = GetWeightTypeInfo(tensor.type).block_size != 1;
  std::vector<float> values(kTileRows);
  const std::vector<float> ones(cols, 1.0f);
  const OwnedOperand input(ConstFloatRows(ones.data(), 1, cols), {.quantized = quantized}, team);
  for (size_t tile = 0; tile < total; ++tile) {
    const uint8_t* data = tensor.data.data() + tensor.data.size() / total * tile;
    const size_t first_row = tile / tiles * tensor.dims[1] + tile % tiles * kTileRows;
    if (quantized) {
      const PackedMatrix rows = PackedMatrix::View(data, tensor.type, kTileRows, cols);
      MatMul(rows, *input, FloatRows(values.data(), 1, kTileRows), team);
      const size_t bad = FirstBad(values);
      if (bad == kTileRows) continue;
      return Damaged(file, tensor, values[bad],
                     absl::StrCat("row ", first_row + bad, " of ", tensor.ShapeString()));
    }
    const size_t together = tensor.type == WeightType::kBF16 ? 2 : 1;
    values.resize(together * kTileRows);
    const WeightMatrix columns{.data = data,
                               .type = tensor.type,
                               .rows = (cols + together - 1) / together,
                               .cols = values.size()};
    for (size_t i = 0; i < columns.rows; ++i) {
      DequantizeRow(columns, i, values.data());
      const size_t bad = FirstBad(values);
      if (bad == values.size()) continue;
      return Damaged(
          file, tensor, values[bad],
          ElementName(tensor, first_row + bad / together, i * together + bad % together));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTensors(const GgufFile& file, Team& team, const Progress& progress) {
  uint64_t total = 0, done = 0;
  for (const GgufTensor& tensor : file.tensors()) total += tensor.data.size();
  for (const GgufTensor& tensor : file.tensors()) {
    const auto checked = [&](uint64_t bytes) {
      done += bytes;
      if (progress) progress(done, total);
    };
    if (tensor.packed) {
      INLAY_RETURN_IF_ERROR(CheckTiles(file, tensor, team));
      checked(tensor.data.size());
    } else {
      INLAY_RETURN_IF_ERROR(CheckRows(file, tensor, team, checked));
    }
  }
  return file.CheckWhole();
}

}  // namespace inlay
