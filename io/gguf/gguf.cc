#include "io/gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

// Whether there is an element, all are numbers or flags, and they have the same bytes.
bool HasEqualNumbers(const GgufValue& value) {
  const absl::Span<const uint8_t> bytes = value.payload();  // empty for strings
  const size_t size = GgufTypeSize(value.element_type());
  return !bytes.empty() && std::equal(bytes.begin() + size, bytes.end(), bytes.begin());
}

}  // namespace

std::string GgufTensor::ShapeString() const {
  return absl::StrJoin(dims.begin(), dims.begin() + n_dims, " x ");
}

absl::Status GgufFile::CheckWhole() const {
  for (const OpenFile& file : files_) INLAY_RETURN_IF_ERROR(file.mapped.CheckWhole(file.path));
  return absl::OkStatus();
}

const MappedFile* GgufFile::FileOf(absl::Span<const uint8_t> data) const {
  for (const OpenFile& file : files_) {
    const absl::Span<const uint8_t> bytes = file.mapped.bytes();
    // Addresses in different files are compared as std::less does, in a total order.
    if (!std::less<>()(data.data(), bytes.data()) && !std::less<>()(bytes.end(), data.end()))
      return &file.mapped;
  }
  return nullptr;
}

void GgufFile::Forget(absl::Span<const uint8_t> data) const {
  if (const MappedFile* file = FileOf(data)) file->Forget(data);
}

void GgufFile::Read(absl::Span<const uint8_t> data, uint8_t* to) const {
  if (const MappedFile* file = FileOf(data)) return file->Read(data, to);
  std::copy(data.begin(), data.end(), to);
}

const GgufValue* GgufFile::Find(absl::string_view key) const {
  const auto index = key_index_.Find(key, [this](size_t i) { return metadata_[i].key(); });
  return index.has_value() ? &metadata_[*index].value : nullptr;
}

const GgufTensor* GgufFile::FindTensor(absl::string_view name) const {
  const auto name_of = [this](size_t i) { return absl::string_view(tensors_[i].name); };
  const auto index = tensor_index_.Find(name, name_of);
  return index.has_value() ? &tensors_[*index] : nullptr;
}

absl::Status GgufFile::WrongType(absl::string_view key, const GgufValue& value,
                                 absl::string_view wanted) const {
  return absl::InvalidArgumentError(absl::StrCat(name_, ": key ", QuoteForMessage(key),
                                                 " has type ", value.TypeName(), " and value ",
                                                 value.ToString(4), ", but must be ", wanted));
}

absl::StatusOr<const GgufValue*> GgufFile::FindWanted(absl::string_view key,
                                                      absl::string_view wanted) const {
  const GgufValue* value = Find(key);
  if (value != nullptr) return value;
  return absl::NotFoundError(absl::StrCat(name_, ": key ", QuoteForMessage(key),
                                          " is missing, but must be there as ", wanted));
}

absl::StatusOr<const GgufValue*> GgufFile::FindOne(absl::string_view key,
                                                   absl::string_view wanted) const {
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindWanted(key, wanted));
  if (value->size() != 1 && !HasEqualNumbers(*value)) return WrongType(key, *value, wanted);
  return value;
}

absl::StatusOr<uint64_t> GgufFile::GetUint(absl::string_view key) const {
  constexpr absl::string_view kWanted = "a nonnegative integer";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindOne(key, kWanted));
  if (const auto number = value->UintAt(0)) return *number;
  return WrongType(key, *value, kWanted);
}

absl::StatusOr<int64_t> GgufFile::GetInt(absl::string_view key) const {
  constexpr absl::string_view kWanted = "an integer from -2^63 to 2^63 - 1";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindOne(key, kWanted));
  if (const auto number = value->IntAt(0)) return *number;
  return WrongType(key, *value, kWanted);
}

absl::StatusOr<double> GgufFile::GetFloat(absl::string_view key) const {
  constexpr absl::string_view kWanted = "a float32 or float64";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindOne(key, kWanted));
  if (const auto number = value->FloatAt(0)) return *number;
  return WrongType(key, *value, kWanted);
}

absl::StatusOr<bool> GgufFile::GetBool(absl::string_view key) const {
  constexpr absl::string_view kWanted = "a bool";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindOne(key, kWanted));
  if (const auto flag = value->BoolAt(0)) return *flag;
  return WrongType(key, *value, kWanted);
}

absl::StatusOr<absl::string_view> GgufFile::GetString(absl::string_view key) const {
  constexpr absl::string_view kWanted = "a string";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindOne(key, kWanted));
  if (const auto text = value->StringAt(0)) return *text;
  return WrongType(key, *value, kWanted);
}

absl::StatusOr<GgufStrings> GgufFile::GetStrings(absl::string_view key) const {
  constexpr absl::string_view kWanted = "an array of strings";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindWanted(key, kWanted));
  if (!value->is_array() || value->element_type() != GgufType::kString)
    return WrongType(key, *value, kWanted);
  return value->strings();
}

absl::StatusOr<std::vector<int64_t>> GgufFile::GetInts(absl::string_view key) const {
  constexpr absl::string_view kWanted = "an array of integers or bools";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindWanted(key, kWanted));
  std::vector<int64_t> out;
  for (size_t i = 0; i < value->size(); ++i) {
    if (const auto number = value->IntAt(i)) {
      out.push_back(*number);
    } else if (const auto flag = value->BoolAt(i)) {
      out.push_back(*flag ? 1 : 0);
    } else {
      return WrongType(key, *value, kWanted);
    }
  }
  return out;
}

absl::StatusOr<std::vector<float>> GgufFile::GetFloats(absl::string_view key) const {
  constexpr absl::string_view kWanted = "an array of float32";
  INLAY_ASSIGN_OR_RETURN(const GgufValue* value, FindWanted(key, kWanted));
  if (value->element_type() != GgufType::kFloat32) return WrongType(key, *value, kWanted);
  std::vector<float> out(value->size());
  if (!out.empty()) std::memcpy(out.data(), value->payload().data(), out.size() * sizeof(float));
  return out;
}

}  // namespace inlay
