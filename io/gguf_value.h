// One metadata value of a GGUF file: a number, a flag, a string, or an array of one of these.
#ifndef INLAY_IO_GGUF_VALUE_H_
#define INLAY_IO_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// Bytes that the format lets a key and a tensor's name have.
inline constexpr size_t kLongestGgufKey = 65535;
inline constexpr size_t kLongestGgufTensorName = 64;

// The values are the type ids of the GGUF format.
enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// As in the format's description: "uint32", "float32", "string"; "unknown" for other ids.
absl::string_view GgufTypeName(GgufType type);

// Bytes of one value; 0 for strings, arrays and unknown types.
size_t GgufTypeSize(GgufType type);

// A checked value: views into the file's bytes, so it lives as long as they do. A scalar is seen
// as an array of one element.
class GgufValue {
 public:
  // `payload`: `count` packed elements of a fixed-size type.
  GgufValue(GgufType element_type, bool is_array, size_t count, absl::Span<const uint8_t> payload)
      : element_type_(element_type), is_array_(is_array), count_(count), payload_(payload) {}
  GgufValue(std::vector<absl::string_view> strings, bool is_array)
      : element_type_(GgufType::kString),
        is_array_(is_array),
        count_(strings.size()),
        strings_(std::move(strings)) {}

  bool is_array() const { return is_array_; }
  GgufType element_type() const { return element_type_; }
  size_t size() const { return count_; }

  // "uint32", or "array of string".
  std::string TypeName() const;

  // The i-th element, i < size(), when the element type can be read so: any integer type whose
  // value fits for the first two; float32 or float64; bool; string.
  std::optional<uint64_t> UintAt(size_t i) const;
  std::optional<int64_t> IntAt(size_t i) const;
  std::optional<double> FloatAt(size_t i) const;
  std::optional<bool> BoolAt(size_t i) const;
  std::optional<absl::string_view> StringAt(size_t i) const;

  // All elements of a string array (or the one string); empty for other types.
  absl::Span<const absl::string_view> strings() const { return strings_; }
  // The packed elements, little-endian and not aligned; empty for strings.
  absl::Span<const uint8_t> payload() const { return payload_; }

  // For people: strings quoted and escaped, at most `max_elements` of an array, and at most 80
  // bytes of a string.
  std::string ToString(size_t max_elements = 8) const;

 private:
  template <typename T>
  T Read(size_t i) const;

  GgufType element_type_;
  bool is_array_;
  size_t count_;
  absl::Span<const uint8_t> payload_;
  std::vector<absl::string_view> strings_;
};

// `text` in single quotes for a message: escaped, and cut after 80 bytes.
std::string QuoteForMessage(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_IO_GGUF_VALUE_H_
