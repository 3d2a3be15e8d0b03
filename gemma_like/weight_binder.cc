#include "gemma_like/weight_binder.h"

#include "absl/strings/str_cat.h"
#include "gemma_like/strings.h"
#include "ops/dequantize.h"

namespace inlay {

const GgufTensor* WeightBinder::Take(absl::string_view name) {
  taken_.insert(std::string(name));
  const GgufTensor* tensor = file_.FindTensor(name);
  if (tensor == nullptr && status_.ok()) {
    status_ = absl::NotFoundError(absl::StrCat(file_.name(), " has no tensor '", name, "'"));
  }
  return status_.ok() ? tensor : nullptr;
}

void WeightBinder::Fail(const GgufTensor& tensor, absl::string_view wanted) {
  if (!status_.ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat(file_.name(), ": tensor '", tensor.name, "' is ", tensor.ShapeString(),
                   " of type ", ToAbsl(GetWeightTypeInfo(tensor.type).name), ", not ", wanted));
}

WeightMatrix WeightBinder::Matrix(absl::string_view name, size_t rows, size_t cols) {
  return Matrices(name, 1, rows, cols);
}

WeightMatrix WeightBinder::Matrices(absl::string_view name, size_t count, size_t rows,
                                    size_t cols) {
  const GgufTensor* tensor = Take(name);
  if (tensor == nullptr) return {};
  const auto& dims = tensor->dims;
  if (dims[0] != cols || dims[1] != rows || dims[2] != count || dims[3] != 1) {
    Fail(*tensor, count == 1 ? absl::StrCat(cols, " x ", rows)
                             : absl::StrCat(cols, " x ", rows, " x ", count));
    return {};
  }
  return {.data = tensor->data.data(), .type = tensor->type, .rows = count * rows, .cols = cols};
}

PackedMatrix WeightBinder::Pack(const WeightMatrix& matrix) {
  if (matrix.data == nullptr || !status_.ok()) return {};
  PackedMatrix packed = PackedMatrix::Pack(matrix, pool_);
  if (packed.empty()) {
    status_ = absl::ResourceExhaustedError(absl::StrCat(
        file_.name(), ": no memory for a matrix of ", matrix.cols, " x ", matrix.rows));
  }
  // So that a model takes its memory once while it is loaded, not twice.
  file_.Forget({static_cast<const uint8_t*>(matrix.data), matrix.rows * matrix.RowBytes()});
  return packed;
}

std::vector<float> WeightBinder::Vector(absl::string_view name, size_t cols, size_t rows) {
  const size_t size = cols * rows;
  const GgufTensor* tensor = Take(name);
  if (tensor == nullptr) return {};
  if (tensor->num_elements() != size || GetWeightTypeInfo(tensor->type).block_size != 1) {
    Fail(*tensor, absl::StrCat(size, " elements of type F32, F16 or BF16"));
    return {};
  }
  std::vector<float> values(size);
  DequantizeRow({.data = tensor->data.data(), .type = tensor->type, .rows = 1, .cols = size}, 0,
                values.data());
  return values;
}

std::vector<float> WeightBinder::Transposed(absl::string_view name, size_t rows, size_t cols) {
  const GgufTensor* tensor = file_.FindTensor(name);
  std::vector<float> values = Vector(name, rows * cols);
  if (values.empty()) return {};
  if (tensor->dims[0] != cols || tensor->dims[1] != rows) {
    Fail(*tensor, absl::StrCat(cols, " x ", rows));
    return {};
  }
  std::vector<float> transposed(values.size());
  for (size_t r = 0; r < rows; ++r) {
    for (size_t c = 0; c < cols; ++c) transposed[c * rows + r] = values[r * cols + c];
  }
  return transposed;
}

absl::Status WeightBinder::Finish() const {
  if (!status_.ok()) return status_;
  for (const GgufTensor& tensor : file_.tensors()) {
    if (!taken_.contains(std::string(tensor.name))) {
      return absl::InvalidArgumentError(absl::StrCat(file_.name(), " has a tensor '", tensor.name,
                                                     "' that its config does not use"));
    }
  }
  return absl::OkStatus();
}

}  // namespace inlay
