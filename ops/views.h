// Non-owning views of the arrays that ops read and write.
#ifndef INLAY_OPS_VIEWS_H_
#define INLAY_OPS_VIEWS_H_

#include <cassert>
#include <cstddef>
#include <type_traits>

namespace inlay {

// `rows` rows of `cols` elements each, row r starting `r * stride` elements after `data`.
template <class T>
struct Rows {
  T* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;  // elements, >= cols

  Rows() = default;
  Rows(T* data, size_t rows, size_t cols) : Rows(data, rows, cols, cols) {}
  Rows(T* data, size_t rows, size_t cols, size_t stride)
      : data(data), rows(rows), cols(cols), stride(stride) {}
  // A view that may write is also a view that may read.
  template <class U>
  requires(std::is_same_v<const U, T> && !std::is_same_v<U, T>)
      Rows(const Rows<U>& other)  // NOLINT(google-explicit-constructor)
      : Rows(other.data, other.rows, other.cols, other.stride) {}

  T* Row(size_t r) const {
    assert(r < rows);
    return data + r * stride;
  }
  // Rows [first, first + count).
  Rows Slice(size_t first, size_t count) const {
    assert(first + count <= rows);
    return Rows(data + first * stride, count, cols, stride);
  }
  // Columns [first, first + count) of every row.
  Rows Columns(size_t first, size_t count) const {
    assert(first + count <= cols);
    return Rows(data + first, rows, count, stride);
  }
};

using FloatRows = Rows<float>;
using ConstFloatRows = Rows<const float>;

}  // namespace inlay

#endif  // INLAY_OPS_VIEWS_H_
