// What Intel AMX does, on CPUs without it: the operations of Intel's manual (SDM, volume 2), as
// they stand there, and its faults as exceptions.
#ifndef INLAY_TESTS_OPS_EMULATED_TILES_H_
#define INLAY_TESTS_OPS_EMULATED_TILES_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "ops/cpu/amx_tiles.h"

namespace inlay {

struct AmxRegister {
  static constexpr size_t kRows = 16, kRowBytes = 64;
  size_t rows = 0, row_bytes = 0;
  uint8_t data[kRows][kRowBytes] = {};
};

struct AmxState {
  static constexpr size_t kRegisters = 8;
  bool configured = false;
  AmxRegister registers[kRegisters];
};

// As AmxTiles (ops/cpu/amx_tiles.h). Each thread has registers of its own.
class EmulatedTiles {
 public:
  struct Fault : std::logic_error {
    using logic_error::logic_error;
  };

  static bool configured() { return state_.configured; }

  static void Configure(const AmxShapes& shapes) {
    FaultIf(shapes.palette != 1 || shapes.start_row != 0, "only this palette is emulated");
    for (uint8_t byte : shapes.reserved) FaultIf(byte != 0, "reserved");
    for (size_t r = 0; r < 16; ++r) {
      const size_t rows = shapes.rows[r], bytes = shapes.row_bytes[r];
      FaultIf(r >= kRegisters && (rows != 0 || bytes != 0), "reserved");
      FaultIf(rows > kRows || bytes > kRowBytes, "too large");
      FaultIf((rows == 0) != (bytes == 0), "half empty");
    }
    state_ = {};
    state_.configured = true;
    for (size_t r = 0; r < kRegisters; ++r) {
      state_.registers[r].rows = shapes.rows[r];
      state_.registers[r].row_bytes = shapes.row_bytes[r];
    }
  }

  static void Release() { state_ = {}; }

  template <int r>
  static void Zero() {
    std::memset(Valid(r).data, 0, sizeof(AmxRegister::data));
  }

  template <int r>
  static void Load(const void* from, size_t stride) {
    AmxRegister& to = Valid(r);
    std::memset(to.data, 0, sizeof(to.data));
    for (size_t row = 0; row < to.rows; ++row) {
      std::memcpy(to.data[row], static_cast<const uint8_t*>(from) + row * stride, to.row_bytes);
    }
  }

  template <int r>
  static void Store(void* to, size_t stride) {
    const AmxRegister& from = Valid(r);
    for (size_t row = 0; row < from.rows; ++row) {
      std::memcpy(static_cast<uint8_t*>(to) + row * stride, from.data[row], from.row_bytes);
    }
  }

  // TDPBSSD.
  template <int sums, int a, int b>
  static void AddProducts() {
    AddProductsOf<int8_t>(Operands<sums, a, b>());
  }

  // TDPBSUD.
  template <int sums, int a, int b>
  static void AddProductsOfUnsigned() {
    AddProductsOf<uint8_t>(Operands<sums, a, b>());
  }

  // TDPBF16PS.
  template <int sums, int a, int b>
  static void AddProductsOfBf16() {
    const auto [c, x, y] = Operands<sums, a, b>();
    // Of a pair of rows those of even columns and of odd ones. Unused columns are computed as well.
    Floats columns[2 * kRows] = {};
    for (size_t k = 0; k < 2 * size_t{y.rows}; ++k) {
      for (size_t n = 0; n < kRows; ++n)
        columns[k][n] = Bf16At(&y.data[k / 2][4 * n + 2 * (k % 2)]);
    }
    for (size_t m = 0; m < c.rows; ++m) {
      Floats chains[2] = {}, all;
      for (size_t k = 0; k < 2 * size_t{y.rows}; ++k)
        AddProducts(Bf16At(&x.data[m][2 * k]), columns[k], chains[k % 2]);
      std::memcpy(all, c.data[m], sizeof(all));
      for (size_t n = 0; n < kRows; ++n)
        all[n] = Flush(Flush(all[n]) + Flush(chains[0][n] + chains[1][n]));
      std::memcpy(c.data[m], all, sizeof(all));
    }
    ClearUnused(c);
  }

 private:
  static constexpr size_t kRegisters = AmxState::kRegisters, kRows = AmxRegister::kRows,
                          kRowBytes = AmxRegister::kRowBytes;

  using Floats = float[kRows];

  // chain += a * b, fused. Products of bfloat16 need no more bits than floats have, so that the
  // sums alone are rounded, unless a product is subnormal or infinite.
  static void AddProducts(float a, const Floats& b, Floats& chain) {
    Floats products;
    bool exact = true;
    for (size_t n = 0; n < kRows; ++n) {
      products[n] = a * b[n];
      const float size = std::fabs(products[n]);
      exact &= b[n] == 0 || (size >= std::numeric_limits<float>::min() &&
                             size <= std::numeric_limits<float>::max());
    }
    if (exact || a == 0) {
      for (size_t n = 0; n < kRows; ++n) chain[n] = Flush(products[n] + chain[n]);
    } else {
      for (size_t n = 0; n < kRows; ++n) chain[n] = Flush(std::fma(a, b[n], chain[n]));
    }
  }

  struct Three {
    AmxRegister& c;
    const AmxRegister &x, &y;
  };
  // The registers of a product, whose shapes fit.
  template <int sums, int a, int b>
  static Three Operands() {
    const Three three = {Valid(sums), Valid(a), Valid(b)};
    const auto& [c, x, y] = three;
    FaultIf(sums == a || sums == b || a == b, "the same register twice");
    FaultIf(x.row_bytes / 4 != y.rows || c.row_bytes != y.row_bytes || c.rows != x.rows,
            "shapes do not fit");
    return three;
  }
  template <class B>
  static void AddProductsOf(const Three& operands) {
    const auto& [c, x, y] = operands;
    for (size_t m = 0; m < c.rows; ++m) {
      for (size_t k = 0; k < x.row_bytes / 4; ++k) {
        for (size_t n = 0; n < y.row_bytes / 4; ++n) {
          uint32_t sum;  // wraps around
          std::memcpy(&sum, &c.data[m][4 * n], 4);
          for (size_t j = 0; j < 4; ++j) {
            const int32_t product =
                static_cast<int8_t>(x.data[m][4 * k + j]) * static_cast<B>(y.data[k][4 * n + j]);
            sum += static_cast<uint32_t>(product);
          }
          std::memcpy(&c.data[m][4 * n], &sum, 4);
        }
      }
    }
    ClearUnused(c);
  }
  static void ClearUnused(AmxRegister& c) {
    for (size_t m = 0; m < kRows; ++m) {
      const size_t used = m < c.rows ? c.row_bytes : 0;
      std::fill(c.data[m] + used, c.data[m] + kRowBytes, uint8_t{0});
    }
  }

  // Subnormal operands and results are zeros.
  static float Flush(float x) {
    return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  }
  static float Bf16At(const uint8_t* from) {
    uint16_t bits;
    std::memcpy(&bits, from, 2);
    const uint32_t word = uint32_t{bits} << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return Flush(value);
  }

  static void FaultIf(bool faults, const char* why) {
    if (faults) throw Fault(why);
  }
  static AmxRegister& Valid(int r) {
    FaultIf(!state_.configured, "not configured");
    AmxRegister& valid = state_.registers[r];
    FaultIf(valid.rows == 0, "without rows");
    FaultIf(valid.row_bytes % 4 != 0, "rows of a part of a word");
    return valid;
  }

  static inline thread_local AmxState state_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_EMULATED_TILES_H_
