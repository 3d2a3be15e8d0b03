#include "io/gguf/gguf_value.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace inlay {

static_assert(std::endian::native == std::endian::little,
              "GGUF values are read in place, as little-endian");

namespace {

template <typename T>
T LoadAs(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// A string is its length in 8 bytes, and its bytes.
absl::string_view TextAt(const uint8_t* at) {
  return {reinterpret_cast<const char*>(at + sizeof(uint64_t)),
          static_cast<size_t>(LoadAs<uint64_t>(at))};
}
const uint8_t* AfterText(const uint8_t* at) { return at + sizeof(uint64_t) + LoadAs<uint64_t>(at); }

}  // namespace

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

absl::string_view GgufStrings::const_iterator::operator*() const { return TextAt(at_); }

GgufStrings::const_iterator& GgufStrings::const_iterator::operator++() {
  at_ = AfterText(at_);
  --left_;
  return *this;
}

absl::string_view GgufValue::key() const { return TextAt(entry_); }

GgufValue::ValueLayout GgufValue::Layout() const {
  const uint8_t* at = AfterText(entry_);
  const GgufType type = LoadAs<GgufType>(at);
  at += sizeof(type);
  if (type != GgufType::kArray) return {type, false, 1, at};
  const GgufType element = LoadAs<GgufType>(at);
  at += sizeof(element);
  return {element, true, static_cast<size_t>(LoadAs<uint64_t>(at)), at + sizeof(uint64_t)};
}

absl::Span<const uint8_t> GgufValue::Encoded() const {
  const ValueLayout layout = Layout();
  const uint8_t* const begin = AfterText(entry_);
  const uint8_t* end = layout.first + layout.count * GgufTypeSize(layout.type);
  if (layout.type == GgufType::kString) {
    for (size_t i = 0; i < layout.count; ++i) end = AfterText(end);
  }
  return {begin, static_cast<size_t>(end - begin)};
}

GgufStrings GgufValue::strings() const {
  const ValueLayout layout = Layout();
  if (layout.type != GgufType::kString) return {};
  return {layout.first, layout.count};
}

absl::Span<const uint8_t> GgufValue::payload() const {
  const ValueLayout layout = Layout();
  return {layout.first, layout.count * GgufTypeSize(layout.type)};
}

std::string GgufValue::TypeName() const {
  return absl::StrCat(is_array() ? "array of " : "", GgufTypeName(element_type()));
}

template <typename T>
T GgufValue::Read(size_t i) const {
  const ValueLayout layout = Layout();
  assert(i < layout.count);
  return LoadAs<T>(layout.first + i * sizeof(T));
}

std::optional<uint64_t> GgufValue::UintAt(size_t i) const {
  if (element_type() == GgufType::kUint64) return Read<uint64_t>(i);
  const std::optional<int64_t> value = IntAt(i);
  if (!value.has_value() || *value < 0) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<int64_t> GgufValue::IntAt(size_t i) const {
  switch (element_type()) {
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
  if (element_type() == GgufType::kFloat32) return Read<float>(i);
  if (element_type() == GgufType::kFloat64) return Read<double>(i);
  return std::nullopt;
}

std::optional<bool> GgufValue::BoolAt(size_t i) const {
  if (element_type() != GgufType::kBool) return std::nullopt;
  return Read<uint8_t>(i) != 0;
}

std::optional<absl::string_view> GgufValue::StringAt(size_t i) const {
  if (element_type() != GgufType::kString) return std::nullopt;
  const GgufStrings all = strings();
  assert(i < all.size());
  return *std::next(all.begin(), static_cast<std::ptrdiff_t>(i));
}

std::string GgufValue::ToString(size_t max_elements) const {
  std::string out = is_array() ? "[" : "";
  for (size_t i = 0; i < std::min(size(), max_elements); ++i) {
    if (i > 0) out += ", ";
    if (const auto text = StringAt(i)) {
      out += QuoteForMessage(*text);
    } else if (element_type() == GgufType::kBool) {
      out += *BoolAt(i) ? "true" : "false";
    } else if (const auto f = FloatAt(i)) {
      absl::StrAppend(&out, *f);
    } else if (element_type() == GgufType::kUint64) {
      absl::StrAppend(&out, *UintAt(i));
    } else {
      absl::StrAppend(&out, *IntAt(i));
    }
  }
  if (!is_array()) return out;
  if (size() > max_elements) absl::StrAppend(&out, ", ... (", size(), " in all)");
  return out + "]";
}

}  // namespace inlay
