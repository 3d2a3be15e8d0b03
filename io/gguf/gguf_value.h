// One metadata value of a GGUF file: a number, a flag, a string, or an array of one of these.
#ifndef INLAY_IO_GGUF_GGUF_VALUE_H_
#define INLAY_IO_GGUF_GGUF_VALUE_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// The longest keys and tensor names of the format, in bytes.
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

// The strings of a value, read in place, one after the other.
class GgufStrings {
 public:
  class const_iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = absl::string_view;
    using difference_type = std::ptrdiff_t;
    using pointer = const absl::string_view*;
    using reference = absl::string_view;

    const_iterator() = default;
    const_iterator(const uint8_t* at, size_t left) : at_(at), left_(left) {}
    absl::string_view operator*() const;
    const_iterator& operator++();
    const_iterator operator++(int) {
      const const_iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const const_iterator& other) const { return left_ == other.left_; }

   private:
    const uint8_t* at_ = nullptr;
    size_t left_ = 0;
  };
  using iterator = const_iterator;
  using value_type = absl::string_view;
  using const_reference = absl::string_view;
  using size_type = size_t;

  GgufStrings() = default;
  GgufStrings(const uint8_t* first, size_t count) : first_(first), count_(count) {}

  const_iterator begin() const { return {first_, count_}; }
  const_iterator end() const { return {nullptr, 0}; }
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }

 private:
  const uint8_t* first_ = nullptr;
  size_t count_ = 0;
};

// A checked value with its key: a pointer into the file's bytes, so it is valid as long as they
// are, and many values need little memory besides the file's. A scalar is seen as an array of one
// element.
class GgufValue {
 public:
  // `entry` points to the key's length; the bytes up to the value's end must have been checked.
  explicit GgufValue(const uint8_t* entry) : entry_(entry) {}

  absl::string_view key() const;
  // The value as encoded in the file, beginning with its type.
  absl::Span<const uint8_t> Encoded() const;

  bool is_array() const { return Layout().is_array; }
  GgufType element_type() const { return Layout().type; }
  size_t size() const { return Layout().count; }

  // "uint32", or "array of string".
  std::string TypeName() const;

  // The i-th element, i < size(); nothing when the element type does not match. The first two
  // accept any integer type if the value fits, the others float32 or float64, bool, and string.
  // StringAt(i) costs i steps; use strings() to read all.
  std::optional<uint64_t> UintAt(size_t i) const;
  std::optional<int64_t> IntAt(size_t i) const;
  std::optional<double> FloatAt(size_t i) const;
  std::optional<bool> BoolAt(size_t i) const;
  std::optional<absl::string_view> StringAt(size_t i) const;

  // All elements of a string array (or the one string); empty for other types.
  GgufStrings strings() const;
  // The packed elements, little-endian and not aligned; empty for strings.
  absl::Span<const uint8_t> payload() const;

  // For messages: strings quoted and escaped, at most `max_elements` of an array, and at most 80
  // bytes of a string.
  std::string ToString(size_t max_elements = 8) const;

 private:
  struct ValueLayout {
    GgufType type;  // of an element
    bool is_array;
    size_t count;
    const uint8_t* first;  // element
  };
  ValueLayout Layout() const;
  template <typename T>
  T Read(size_t i) const;

  const uint8_t* entry_;
};

}  // namespace inlay

#endif  // INLAY_IO_GGUF_GGUF_VALUE_H_
