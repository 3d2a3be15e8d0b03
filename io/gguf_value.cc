#include "io/gguf_value.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "io/printable.h"
#include "io/utf8.h"

namespace inlay {

static_assert(std::endian::native == std::endian::little,
              "GGUF values are read in place, as little-endian");

absl::string_view GgufTypeName(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return "uint8";
    case GgufType::kInt8:
      return "int8";
    case GgufType::kUint16:
      return "uint16";
    case GgufType::kInt16:
      return "int16";
    case GgufType::kUint32:
      return "uint32";
    case GgufType::kInt32:
      return "int32";
    case GgufType::kFloat32:
      return "float32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kUint64:
      return "uint64";
    case GgufType::kInt64:
      return "int64";
    case GgufType::kFloat64:
      return "float64";
  }
  return "unknown";
}

size_t GgufTypeSize(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      return 0;
  }
  return 0;
}

std::string GgufValue::TypeName() const {
  return absl::StrCat(is_array_ ? "array of " : "", GgufTypeName(element_type_));
}

template <typename T>
T GgufValue::Read(size_t i) const {
  assert(i < count_);
  T value;
  std::memcpy(&value, payload_.data() + i * sizeof(T), sizeof(T));
  return value;
}

std::optional<uint64_t> GgufValue::UintAt(size_t i) const {
  if (element_type_ == GgufType::kUint64) return Read<uint64_t>(i);
  const std::optional<int64_t> value = IntAt(i);
  if (!value.has_value() || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<int64_t> GgufValue::IntAt(size_t i) const {
  switch (element_type_) {
    case GgufType::kUint8:
      return Read<uint8_t>(i);
    case GgufType::kInt8:
      return Read<int8_t>(i);
    case GgufType::kUint16:
      return Read<uint16_t>(i);
    case GgufType::kInt16:
      return Read<int16_t>(i);
    case GgufType::kUint32:
      return Read<uint32_t>(i);
    case GgufType::kInt32:
      return Read<int32_t>(i);
    case GgufType::kInt64:
      return Read<int64_t>(i);
    case GgufType::kUint64: {
      const uint64_t value = Read<uint64_t>(i);
      if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
      return static_cast<int64_t>(value);
    }
    default:
      return std::nullopt;
  }
}

std::optional<double> GgufValue::FloatAt(size_t i) const {
  if (element_type_ == GgufType::kFloat32) return Read<float>(i);
  if (element_type_ == GgufType::kFloat64) return Read<double>(i);
  return std::nullopt;
}

std::optional<bool> GgufValue::BoolAt(size_t i) const {
  if (element_type_ != GgufType::kBool) return std::nullopt;
  return Read<uint8_t>(i) != 0;
}

std::optional<absl::string_view> GgufValue::StringAt(size_t i) const {
  if (element_type_ != GgufType::kString) return std::nullopt;
  assert(i < count_);
  return strings_[i];
}

std::string QuoteForMessage(absl::string_view text) {
  constexpr size_t kLongest = 80;
  if (text.size() <= kLongest) return absl::StrCat("'", PrintableName(text), "'");
  absl::string_view start = text.substr(0, kLongest);
  start.remove_suffix(IncompleteUtf8Tail(start));
  return absl::StrCat("'", PrintableName(start), "...'");
}

std::string GgufValue::ToString(size_t max_elements) const {
  std::string out = is_array_ ? "[" : "";
  for (size_t i = 0; i < std::min(count_, max_elements); ++i) {
    if (i > 0) out += ", ";
    if (element_type_ == GgufType::kString) {
      out += QuoteForMessage(strings_[i]);
    } else if (element_type_ == GgufType::kBool) {
      out += *BoolAt(i) ? "true" : "false";
    } else if (const auto f = FloatAt(i)) {
      absl::StrAppend(&out, *f);
    } else if (element_type_ == GgufType::kUint64) {
      absl::StrAppend(&out, *UintAt(i));
    } else {
      absl::StrAppend(&out, *IntAt(i));
    }
  }
  if (!is_array_) return out;
  if (count_ > max_elements) absl::StrAppend(&out, ", ... (", count_, " in all)");
  return out + "]";
}

}  // namespace inlay
