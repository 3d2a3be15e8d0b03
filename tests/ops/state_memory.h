// The memory of states in tests of recurrent mixers.
#ifndef INLAY_TESTS_OPS_STATE_MEMORY_H_
#define INLAY_TESTS_OPS_STATE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "ops/state_type.h"
#include "tests/ops/op_test.h"

namespace inlay {

inline constexpr StateType kStateTypes[] = {StateType::kF32, StateType::kQ16};

// `bytes` of NaN, whatever the type of the state.
inline Array StateMemory(size_t bytes) { return Array(1, bytes / sizeof(float)); }

inline std::byte* BytesOf(const Array& memory) {
  return reinterpret_cast<std::byte*>(memory.data());
}

// The numbers of `matrices` matrices [rows, cols] of a state.
inline Array StateNumbers(const Array& memory, StateType type, size_t matrices, size_t rows,
                          size_t cols) {
  Array numbers(matrices * rows, cols);
  for (size_t m = 0; m < matrices; ++m) {
    const std::byte* const matrix = BytesOf(memory) + m * StateMatrixBytes(type, rows, cols);
    for (size_t r = 0; r < rows; ++r) {
      float* const to = numbers.Row(m * rows + r);
      if (type == StateType::kF32) {
        std::memcpy(to, matrix + r * cols * sizeof(float), cols * sizeof(float));
        continue;
      }
      float scale;
      std::memcpy(&scale, matrix + r * sizeof(float), sizeof(scale));
      for (size_t c = 0; c < cols; ++c) {
        int16_t steps;
        std::memcpy(&steps, matrix + rows * sizeof(float) + (r * cols + c) * sizeof(steps),
                    sizeof(steps));
        to[c] = scale * static_cast<float>(steps);
      }
    }
  }
  return numbers;
}

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_STATE_MEMORY_H_
