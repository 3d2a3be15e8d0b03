#include "gemma_like/model/weight_binder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gemma_like/strings.h"
#include "ops/quant/dequantize.h"

namespace inlay {

const GgufTensor* WeightBinder::Find(absl::string_view name) {
  requested_.insert(std::string(name));
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
                   tensor.packed ? " of packed type " : " of type ",
                   ToAbsl(GetWeightTypeInfo(tensor.type).name), ", not ", wanted));
}

const GgufTensor* WeightBinder::FindMatrices(absl::string_view name, size_t count, size_t rows,
                                             size_t cols) {
  const GgufTensor* tensor = Find(name);
  if (tensor == nullptr) return nullptr;
  const auto& dims = tensor->dims;
  if (dims[0] == cols && dims[1] == rows && dims[2] == count && dims[3] == 1) return tensor;
  Fail(*tensor, count == 1 ? absl::StrCat(cols, " x ", rows)
                           : absl::StrCat(cols, " x ", rows, " x ", count));
  return nullptr;
}

size_t WeightBinder::Rows(absl::string_view name, size_t least) const {
  const GgufTensor* tensor = file_.FindTensor(name);
  return tensor == nullptr ? least : std::max<size_t>(least, tensor->dims[1]);
}

WeightMatrix WeightBinder::Matrix(absl::string_view name, size_t rows, size_t cols) {
  const GgufTensor* tensor = FindMatrices(name, 1, rows, cols);
  if (tensor == nullptr) return {};
  if (tensor->packed) {
    Fail(*tensor, "as a GGUF file stores it");
    return {};
  }
  return {.data = tensor->data.data(), .type = tensor->type, .rows = rows, .cols = cols};
}

PackedMatrix WeightBinder::Packed(absl::string_view name, size_t rows, size_t cols, TensorUse use) {
  std::vector<PackedMatrix> one = Packed(name, 1, rows, cols, use);
  return one.empty() ? PackedMatrix() : std::move(one.front());
}

std::vector<PackedMatrix> WeightBinder::Packed(absl::string_view name, size_t count, size_t rows,
                                               size_t cols, TensorUse) {
  const GgufTensor* tensor = FindMatrices(name, count, rows, cols);
  if (tensor == nullptr) return {};
  packed_.insert(std::string(name));
  if (!tensor->packed) packed_bytes_ += count * PackedMatrix::BytesOf(tensor->type, rows, cols);
  if (team_ == nullptr) return {};
  std::vector<PackedMatrix> matrices;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t* data = tensor->data.data() + tensor->data.size() / count * i;
    matrices.push_back(
        tensor->packed
            ? PackedMatrix::View(data, tensor->type, rows, cols)
            : PackedMatrix::Pack({.data = data, .type = tensor->type, .rows = rows, .cols = cols},
                                 *team_, memory_));
    if (matrices.back().empty()) {
      status_ = absl::ResourceExhaustedError(
          absl::StrCat(file_.name(), ": no memory for a matrix of ", cols, " x ", rows));
      return {};
    }
  }
  // Releases the file's pages, so that a model being loaded is not in memory twice.
  if (!tensor->packed) file_.Forget(tensor->data);
  return matrices;
}

std::vector<float> WeightBinder::Vector(absl::string_view name, TensorUse, size_t cols,
                                        size_t rows) {
  const size_t size = cols * rows;
  const GgufTensor* tensor = Find(name);
  if (tensor == nullptr) return {};
  if (tensor->num_elements() != size || GetWeightTypeInfo(tensor->type).block_size != 1 ||
      tensor->packed) {
    Fail(*tensor, absl::StrCat(size, " elements of type F32, F16 or BF16"));
    return {};
  }
  vector_bytes_ += size * sizeof(float);
  std::vector<float> values(size);
  DequantizeRow({.data = tensor->data.data(), .type = tensor->type, .rows = 1, .cols = size}, 0,
                values.data());
  return values;
}

std::vector<float> WeightBinder::Transposed(absl::string_view name, TensorUse use, size_t rows,
                                            size_t cols) {
  const GgufTensor* tensor = file_.FindTensor(name);
  std::vector<float> values = Vector(name, use, rows * cols);
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
    if (!requested_.contains(std::string(tensor.name))) {
      return absl::InvalidArgumentError(absl::StrCat(file_.name(), " has a tensor '", tensor.name,
                                                     "' that its config does not use"));
    }
  }
  return absl::OkStatus();
}

}  // namespace inlay
