// How the elements of stored recurrent states are written.
#ifndef INLAY_OPS_STATE_TYPE_H_
#define INLAY_OPS_STATE_TYPE_H_

#include <cstddef>
#include <cstdint>

namespace inlay {

// The element type of the state matrices that are kept at chunk boundaries. kQ16 is int16 times a
// float scale for each row, the row's greatest magnitude / 32767. So what a chunk adds to a state
// that decays slowly is lost only where it is 65,534 times smaller than the row's greatest number.
// A half-precision float, of the same size, would lose what is 4,096 times smaller.
enum class StateType : uint8_t { kF32, kQ16 };

// Bytes of a matrix [rows, cols] of a state, a multiple of 4. kF32: the elements. kQ16: the scales
// of the rows, then the elements.
constexpr size_t StateMatrixBytes(StateType type, size_t rows, size_t cols) {
  if (type == StateType::kF32) return rows * cols * sizeof(float);
  constexpr size_t kAlign = sizeof(float);
  const size_t elements = rows * cols * sizeof(int16_t);
  return rows * sizeof(float) + (elements + kAlign - 1) / kAlign * kAlign;
}

}  // namespace inlay

#endif  // INLAY_OPS_STATE_TYPE_H_
