// A tokenizer's arrays as packed files hold them, so that loading computes nothing.
#ifndef INLAY_IO_TOKENIZER_READY_ARRAYS_H_
#define INLAY_IO_TOKENIZER_READY_ARRAYS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace inlay {

// Arrays of plain values one after the other: for each its number of bytes (uint64), then its
// elements as they lie in memory, padded with zeros to a multiple of 8 bytes. A class with such
// arrays lists them once, in a function VisitArrays(self, visit) that calls `visit` with each;
// ArrayWriter and ArrayReader are such visitors.
inline constexpr size_t kArrayAlignment = 8;

class ArrayWriter {
 public:
  template <class T>
  void operator()(const std::vector<T>& array) {
    static_assert(std::is_trivially_copyable_v<T>);
    const uint64_t bytes = array.size() * sizeof(T);
    bytes_.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    bytes_.append(reinterpret_cast<const char*>(array.data()), bytes);
    bytes_.append((kArrayAlignment - bytes % kArrayAlignment) % kArrayAlignment, '\0');
  }
  // What was written so far.
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Copies arrays out of `bytes`, which begin at a multiple of kArrayAlignment and may lie in a file
// that changes meanwhile. What the elements are is for the caller to check. Throws std::bad_alloc.
class ArrayReader {
 public:
  explicit ArrayReader(absl::Span<const uint8_t> bytes) : rest_(bytes) {}

  // An array that `bytes` does not hold is empty, and so are those after it.
  template <class T>
  void operator()(std::vector<T>& array) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kArrayAlignment);
    const absl::Span<const uint8_t> bytes = Next();
    failed_ |= bytes.size() % sizeof(T) != 0;
    const T* const begin = reinterpret_cast<const T*>(bytes.data());
    array.assign(begin, begin + (failed_ ? 0 : bytes.size() / sizeof(T)));
  }
  // Whether `bytes` held exactly the arrays that were asked for.
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  absl::Span<const uint8_t> Next() {
    uint64_t size = 0;
    failed_ |= rest_.size() < sizeof(size);
    if (failed_) return {};
    std::memcpy(&size, rest_.data(), sizeof(size));
    rest_.remove_prefix(sizeof(size));
    failed_ |= size > rest_.size();
    if (failed_) return {};
    const absl::Span<const uint8_t> bytes = rest_.first(size);
    const size_t padding = (kArrayAlignment - size % kArrayAlignment) % kArrayAlignment;
    failed_ |= padding > rest_.size() - size;
    rest_.remove_prefix(failed_ ? 0 : size + padding);
    return bytes;
  }

  absl::Span<const uint8_t> rest_;
  bool failed_ = false;
};

// The arrays of these objects in turn.
template <class... Parts>
std::string WriteArrays(const Parts&... parts) {
  ArrayWriter writer;
  (Parts::VisitArrays(parts, writer), ...);
  return writer.Take();
}

// Copies them out of `bytes`; false where these are not exactly they.
template <class... Parts>
bool ReadArrays(absl::Span<const uint8_t> bytes, Parts&... parts) {
  ArrayReader reader(bytes);
  (Parts::VisitArrays(parts, reader), ...);
  return reader.complete();
}

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_READY_ARRAYS_H_
