// Arrays that are computed when a vocabulary is read, or lie ready in a packed file.
#ifndef INLAY_IO_TOKENIZER_STORED_ARRAY_H_
#define INLAY_IO_TOKENIZER_STORED_ARRAY_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay {

// An array of plain values that owns its memory, or is a view of memory that outlives it.
template <class T>
class StoredArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  StoredArray() = default;
  explicit StoredArray(std::vector<T> values) : own_(std::move(values)), view_(own_) {}
  // A view; `values` is aligned for T.
  static StoredArray View(absl::Span<const T> values) {
    StoredArray array;
    array.view_ = values;
    return array;
  }
  StoredArray(StoredArray&&) = default;  // the elements stay where they are
  StoredArray& operator=(StoredArray&&) = default;

  size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  const T& operator[](size_t i) const { return view_[i]; }
  const T* data() const { return view_.data(); }
  const T* begin() const { return view_.begin(); }
  const T* end() const { return view_.end(); }
  // The elements, which must be its own, to change.
  absl::Span<T> own() {
    assert(own_.size() == view_.size());
    return absl::MakeSpan(own_);
  }

 private:
  std::vector<T> own_;
  absl::Span<const T> view_;
};

// Arrays one after the other, as a packed file holds them: for each its number of bytes (uint64),
// then its elements as they lie in memory, each part padded with zeros to a multiple of
// kArrayAlignment. A class with such arrays lists them once, in a function that calls `visit` with
// each; ArrayWriter and ArrayReader are such visitors.
inline constexpr size_t kArrayAlignment = 64;

class ArrayWriter {
 public:
  template <class T>
  void operator()(const StoredArray<T>& array) {
    Append(array.data(), array.size() * sizeof(T));
  }
  // What was written so far.
  std::string Take() { return std::move(bytes_); }

 private:
  void Append(const void* data, uint64_t bytes) {
    bytes_.append(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
    Pad();
    bytes_.append(static_cast<const char*>(data), bytes);
    Pad();
  }
  void Pad() {
    bytes_.resize((bytes_.size() + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment);
  }

  std::string bytes_;
};

// Makes arrays views of `bytes`, which start at a multiple of kArrayAlignment. What the elements
// are is not checked.
class ArrayReader {
 public:
  explicit ArrayReader(absl::Span<const uint8_t> bytes) : rest_(bytes) {}

  // An array that `bytes` does not hold is empty, and so are those after it.
  template <class T>
  void operator()(StoredArray<T>& array) {
    const absl::Span<const uint8_t> bytes = Next(sizeof(T));
    array = StoredArray<T>::View(
        absl::MakeConstSpan(reinterpret_cast<const T*>(bytes.data()), bytes.size() / sizeof(T)));
  }
  // Whether `bytes` held exactly the arrays that were asked for.
  bool complete() const { return !failed_ && rest_.empty(); }

 private:
  absl::Span<const uint8_t> Next(size_t element) {
    uint64_t size = 0;
    if (failed_ || rest_.size() < kArrayAlignment) return Fail();
    std::memcpy(&size, rest_.data(), sizeof(size));
    rest_.remove_prefix(kArrayAlignment);
    if (size > rest_.size() || size % element != 0) return Fail();
    const absl::Span<const uint8_t> bytes = rest_.first(size);
    const size_t padded = (size + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
    if (padded > rest_.size()) return Fail();
    rest_.remove_prefix(padded);
    return bytes;
  }
  absl::Span<const uint8_t> Fail() {
    failed_ = true;
    return {};
  }

  absl::Span<const uint8_t> rest_;
  bool failed_ = false;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_STORED_ARRAY_H_
