#include "gemma_like/model/weight_binder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "gemma_like/model/ignored.h"
#include "gemma_like/strings.h"
#include "ops/quant/dequantize.h"

namespace inlay {

namespace {

// Names of the same tensor, at their ends: that of llama.cpp's converter, and that of Ollama's.
struct OtherName {
  absl::string_view usual;
  absl::string_view other;
};
constexpr OtherName kOtherNames[] = {
    {"ssm_dt.bias", "ssm_dt"},
    {"ffn_down_exps.scale", "ffn_gate_inp.per_expert_scale"},
    // LFM2's norm before the output matrix, which llama.cpp names after the embedding.
    {"token_embd_norm.weight", "output_norm.weight"},
};

}  // namespace

const GgufTensor* WeightBinder::Lookup(absl::string_view name) const {
  const GgufTensor* tensor = file_.FindTensor(name);
  for (const OtherName& names : kOtherNames) {
    if (tensor != nullptr) break;
    absl::string_view start = name;
    if (absl::ConsumeSuffix(&start, names.usual))
      tensor = file_.FindTensor(absl::StrCat(start, names.other));
  }
  return tensor;
}

const GgufTensor* WeightBinder::Find(absl::string_view name) {
  const GgufTensor* tensor = Lookup(name);
  if (tensor != nullptr) {
    requested_.insert(std::string(tensor->name));
  } else if (status_.ok()) {
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

bool WeightBinder::AnyLayerHas(absl::string_view tensor) const {
  const std::string end = absl::StrCat(".", tensor);
  return std::any_of(
      file_.tensors().begin(), file_.tensors().end(), [&](const GgufTensor& candidate) {
        return absl::StartsWith(candidate.name, "blk.") && absl::EndsWith(candidate.name, end);
      });
}

size_t WeightBinder::Rows(absl::string_view name, size_t usual) const {
  const GgufTensor* tensor = Lookup(name);
  return tensor == nullptr ? usual : tensor->dims[1];
}

FileRows WeightBinder::InFile(absl::string_view name, size_t rows, size_t cols, TensorUse) {
  const GgufTensor* tensor = FindMatrices(name, 1, rows, cols);
  if (tensor == nullptr) return {};
  if (tensor->packed) {
    Fail(*tensor, "as a GGUF file stores it");
    return {};
  }
  return {file_, {.data = tensor->data.data(), .type = tensor->type, .rows = rows, .cols = cols}};
}

PackedMatrix WeightBinder::Packed(absl::string_view name, size_t rows, size_t cols, TensorUse) {
  return std::move(PackRows(name, 1, {{std::string(name), rows}}, cols).front().front());
}

std::vector<std::vector<PackedMatrix>> WeightBinder::Packed(
    absl::string_view stack, size_t count, absl::Span<const StackedMatrix> matrices, size_t cols,
    TensorUse) {
  if (Has(stack) && !Has(matrices.front().name)) return PackRows(stack, count, matrices, cols);
  std::vector<std::vector<PackedMatrix>> result;
  for (const StackedMatrix& matrix : matrices)
    result.push_back(std::move(PackRows(matrix.name, count, {matrix}, cols).front()));
  return result;
}

std::vector<std::vector<PackedMatrix>> WeightBinder::PackRows(
    absl::string_view name, size_t count, absl::Span<const StackedMatrix> matrices, size_t cols) {
  std::vector<std::vector<PackedMatrix>> result;
  size_t rows = 0;
  for (const StackedMatrix& matrix : matrices) {
    result.emplace_back(count);
    rows += matrix.rows;
  }
  const GgufTensor* tensor = FindMatrices(name, count, rows, cols);
  if (tensor == nullptr) return result;
  // The tiles of a packed matrix may hold rows of two; packing stores each by itself.
  if (tensor->packed && matrices.size() > 1) {
    Fail(*tensor, "as a GGUF file stores it");
    return result;
  }
  std::vector<PackedPart>& parts = packed_[std::string(tensor->name)];
  parts.clear();
  for (const StackedMatrix& matrix : matrices) {
    parts.push_back({matrix.name, matrix.rows});
  }
  size_t first_row = 0;
  for (size_t m = 0; m < matrices.size(); first_row += matrices[m++].rows) {
    const PartRange own =
        RowsOfRank(matrices[m].rows, ShareOfGroup(share_, matrices[m].holders), matrices[m].unit);
    for (size_t i = 0; i < count; ++i) {
      PackedMatrix& matrix = result[m][i];
      matrix = PackPart(*tensor, i, count, rows, cols, {first_row + own.first, own.count});
      if (!status_.ok()) return result;
      matrix.SetPart(own.first, matrices[m].rows);
    }
  }
  FinishTensor(*tensor);
  return result;
}

std::vector<PackedMatrix> WeightBinder::PackedRanges(absl::string_view name, size_t rows,
                                                     size_t cols,
                                                     absl::Span<const PartRange> ranges) {
  std::vector<PackedMatrix> result(ranges.size());
  const GgufTensor* tensor = FindMatrices(name, 1, rows, cols);
  if (tensor == nullptr) return result;
  packed_[std::string(tensor->name)] = {{std::string(name), rows}};
  for (size_t i = 0; i < ranges.size(); ++i) {
    result[i] = PackPart(*tensor, 0, 1, rows, cols, ranges[i]);
    if (!status_.ok()) return result;
  }
  FinishTensor(*tensor);
  return result;
}

PackedMatrix WeightBinder::PackPart(const GgufTensor& tensor, size_t index, size_t count,
                                    size_t rows, size_t cols, PartRange part) {
  if (!tensor.packed) packed_bytes_ += PackedMatrix::BytesOf(tensor.type, part.count, cols);
  const uint8_t* data = tensor.data.data() + tensor.data.size() / count * index;
  PackedMatrix matrix;
  if (team_ == nullptr) {
    matrix = PackedMatrix::ShapeOf(tensor.type, part.count, cols);
  } else if (tensor.packed) {
    return PackedMatrix::ViewOf(data, tensor.type, rows, cols, part.first, part.count);
  } else {
    const WeightMatrix all{.data = data, .type = tensor.type, .rows = rows, .cols = cols};
    matrix = PackedMatrix::Pack(all.Slice(part.first, part.count), *team_, memory_);
    if (matrix.empty()) {
      status_ = absl::ResourceExhaustedError(
          absl::StrCat(file_.name(), ": no memory for a matrix of ", cols, " x ", part.count));
    }
  }
  matrix.SetPart(part.first, rows);
  return matrix;
}

void WeightBinder::FinishTensor(const GgufTensor& tensor) {
  if (team_ == nullptr) return;
  if (progress_) progress_(packed_bytes_, progress_total_);
  // Releases the file's pages, so that a model being loaded is not in memory twice.
  if (!tensor.packed) file_.Forget(tensor.data);
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
  const std::vector<float> values = Vector(name, use, rows * cols);
  if (values.empty()) return {};
  const GgufTensor* const tensor = Lookup(name);
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

void WeightBinder::Constants(absl::string_view name, absl::Span<const float> values) {
  const size_t before = vector_bytes_;
  const std::vector<float> found = Vector(name, TensorUse::kNorm, values.size());
  vector_bytes_ = before;  // nothing is kept
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == values[i]) continue;
    status_ = absl::InvalidArgumentError(absl::StrCat(file_.name(), ": tensor '", name, "' has ",
                                                      found[i], " at ", i, ", not ", values[i]));
    return;
  }
}

absl::Status WeightBinder::Finish() const {
  if (!status_.ok()) return status_;
  constexpr size_t kNamed = 3;
  std::vector<std::string> names;
  size_t others = 0;
  const IgnoredNames ignored(file_);
  for (const GgufTensor& tensor : file_.tensors()) {
    if (requested_.contains(tensor.name) || ignored.Has(tensor.name)) continue;
    if (names.size() < kNamed) {
      names.push_back(absl::StrCat("'", tensor.name, "'"));
    } else {
      ++others;
    }
  }
  if (names.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      file_.name(), names.size() == 1 ? " has a tensor " : " has tensors ",
      absl::StrJoin(names, ", "), others == 0 ? "" : absl::StrCat(" and ", others, " more"),
      " that its config does not use"));
}

}  // namespace inlay
