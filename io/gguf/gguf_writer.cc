#include "io/gguf/gguf_writer.h"

#include <bit>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/printable.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

template <typename T>
void Append(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendString(std::string* out, absl::string_view text) {
  Append<uint64_t>(out, text.size());
  out->append(text.data(), text.size());
}

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  assert(std::has_single_bit(alignment) && alignment >= 8 && alignment <= 65536);
  SetUint32("general.alignment", alignment);
}

void GgufWriter::AddKey(absl::string_view key) {
  if (metadata_status_.ok() && (key.empty() || key.size() > kLongestGgufKey)) {
    metadata_status_ = absl::InvalidArgumentError(
        absl::StrCat("metadata key ", QuoteForMessage(key), " has ", key.size(),
                     " bytes, outside 1 to ", kLongestGgufKey));
  }
  if (!keys_.insert(std::string(key)).second && metadata_status_.ok()) {
    metadata_status_ = absl::InvalidArgumentError(
        absl::StrCat("metadata key ", QuoteForMessage(key), " is set twice"));
  }
  AppendString(&metadata_, key);
}

void GgufWriter::AddScalar(absl::string_view key, GgufType type, const void* value) {
  AddKey(key);
  Append(&metadata_, type);
  metadata_.append(static_cast<const char*>(value), GgufTypeSize(type));
}

void GgufWriter::AddNumbers(absl::string_view key, GgufType type, size_t count,
                            const void* values) {
  AddKey(key);
  Append(&metadata_, GgufType::kArray);
  Append(&metadata_, type);
  Append<uint64_t>(&metadata_, count);
  if (count > 0) metadata_.append(static_cast<const char*>(values), count * GgufTypeSize(type));
}

void GgufWriter::SetUint32(absl::string_view key, uint32_t value) {
  AddScalar(key, GgufType::kUint32, &value);
}

void GgufWriter::SetInt32(absl::string_view key, int32_t value) {
  AddScalar(key, GgufType::kInt32, &value);
}

void GgufWriter::SetUint64(absl::string_view key, uint64_t value) {
  AddScalar(key, GgufType::kUint64, &value);
}

void GgufWriter::SetFloat32(absl::string_view key, float value) {
  AddScalar(key, GgufType::kFloat32, &value);
}

void GgufWriter::SetBool(absl::string_view key, bool value) {
  const uint8_t byte = value ? 1 : 0;
  AddScalar(key, GgufType::kBool, &byte);
}

void GgufWriter::SetBools(absl::string_view key, absl::Span<const bool> values) {
  static_assert(sizeof(bool) == 1, "a flag of a file is a byte, 0 or 1");
  AddNumbers(key, GgufType::kBool, values.size(), values.data());
}

void GgufWriter::SetString(absl::string_view key, absl::string_view value) {
  AddKey(key);
  Append(&metadata_, GgufType::kString);
  AppendString(&metadata_, value);
}

void GgufWriter::SetStrings(absl::string_view key, absl::Span<const std::string> values) {
  AddKey(key);
  Append(&metadata_, GgufType::kArray);
  Append(&metadata_, GgufType::kString);
  Append<uint64_t>(&metadata_, values.size());
  for (const std::string& value : values) AppendString(&metadata_, value);
}

void GgufWriter::SetInt32s(absl::string_view key, absl::Span<const int32_t> values) {
  AddNumbers(key, GgufType::kInt32, values.size(), values.data());
}

void GgufWriter::SetFloat32s(absl::string_view key, absl::Span<const float> values) {
  AddNumbers(key, GgufType::kFloat32, values.size(), values.data());
}

void GgufWriter::SetValue(absl::string_view key, const GgufValue& value) {
  AddKey(key);
  const absl::Span<const uint8_t> bytes = value.Encoded();
  metadata_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

absl::Status GgufWriter::AddTensor(absl::string_view name, absl::Span<const uint64_t> dims,
                                   WeightType type, bool packed) {
  assert(!file_.has_value());
  const std::string what = absl::StrCat("tensor ", QuoteForMessage(name));
  if (name.empty() || name.size() > kLongestGgufTensorName) {
    return absl::InvalidArgumentError(absl::StrCat("the name of ", what, " has ", name.size(),
                                                   " bytes, outside 1 to ",
                                                   kLongestGgufTensorName));
  }
  if (dims.empty() || dims.size() > 4) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", dims.size(), " dimensions, outside 1 to 4"));
  }
  const WeightTypeInfo& info = GetWeightTypeInfo(type);
  if (dims[0] % info.block_size != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has rows of ", dims[0], " elements, not a multiple of ", info.block_size));
  }
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) {
      return absl::InvalidArgumentError(absl::StrCat(what, " has length 0 in dimension ", d));
    }
  }
  const TensorForm form{.type = type, .packed = packed};
  const std::optional<uint64_t> size = TensorBytes(dims, form);
  uint64_t end = 0;
  if (!size.has_value() || __builtin_add_overflow(data_size_, *size, &end) ||
      __builtin_add_overflow(end, alignment_ - 1, &end)) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " brings the data to a size beyond 2^64 bytes"));
  }
  if (!names_.insert(std::string(name)).second) {
    return absl::InvalidArgumentError(absl::StrCat(what, " is added twice"));
  }
  tensors_.push_back({std::string(name), {dims.begin(), dims.end()}, form, *size, data_size_});
  data_size_ = end / alignment_ * alignment_;
  return absl::OkStatus();
}

absl::Status GgufWriter::Open(const std::string& path, Replace replace) {
  INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, FileKind::kModel, replace));
  return Open(std::move(file));
}

absl::StatusOr<std::string> GgufWriter::Header() const {
  INLAY_RETURN_IF_ERROR(metadata_status_);
  std::string header(kModelMagic);
  Append<uint32_t>(&header, 3);
  Append<uint64_t>(&header, tensors_.size());
  Append<uint64_t>(&header, keys_.size());
  header += metadata_;
  for (const Tensor& tensor : tensors_) {
    AppendString(&header, tensor.name);
    Append<uint32_t>(&header, static_cast<uint32_t>(tensor.dims.size()));
    for (const uint64_t dim : tensor.dims) Append<uint64_t>(&header, dim);
    Append<uint32_t>(&header, TensorFormId(tensor.form));
    Append<uint64_t>(&header, tensor.offset);
  }
  header.resize((header.size() + alignment_ - 1) / alignment_ * alignment_);
  return header;
}

absl::Status GgufWriter::Open(AtomicFile file) {
  assert(!file_.has_value() && file.size() % alignment_ == 0);
  const absl::StatusOr<std::string> header = Header();
  if (!header.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(file.path(), ": ", header.status().message()));
  }
  file_ = std::move(file);
  return file_->Write(AsBytes(*header));
}

absl::Status GgufWriter::Pad() {
  const uint64_t rest = file_->size() % alignment_;
  if (rest == 0) return absl::OkStatus();
  return file_->Write(std::vector<uint8_t>(alignment_ - rest));
}

absl::Status GgufWriter::AppendData(absl::Span<const uint8_t> bytes) {
  assert(file_.has_value());
  if (bytes.empty()) return absl::OkStatus();
  if (current_ == tensors_.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        file_->path(), ": ", bytes.size(), " bytes of data after those of the last tensor"));
  }
  const Tensor& tensor = tensors_[current_];
  if (bytes.size() > tensor.size - written_) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_->path(), ": data of tensor ", QuoteForMessage(tensor.name), " comes to ",
                     written_ + bytes.size(), " bytes, more than its ", tensor.size));
  }
  INLAY_RETURN_IF_ERROR(file_->Write(bytes));
  written_ += bytes.size();
  if (written_ < tensor.size) return absl::OkStatus();
  ++current_;
  written_ = 0;
  return Pad();
}

absl::Status GgufWriter::Finish() {
  INLAY_ASSIGN_OR_RETURN(AtomicFile file, Release());
  return file.Commit();
}

absl::StatusOr<AtomicFile> GgufWriter::Release() {
  assert(file_.has_value());
  if (current_ < tensors_.size()) {
    const Tensor& tensor = tensors_[current_];
    return absl::InvalidArgumentError(absl::StrCat(file_->path(), ": tensor ",
                                                   QuoteForMessage(tensor.name), " has only ",
                                                   written_, " of its ", tensor.size, " bytes"));
  }
  return *std::move(file_);
}

}  // namespace inlay
