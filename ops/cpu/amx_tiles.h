// The instructions of Intel AMX that kernels use, as a class, so that tests can give kernels
// another one that does the same without AMX (tests/ops/emulated_tiles.h).
//
// AMX has eight registers of up to 16 rows of 64 bytes. Intel calls them tiles; here a tile is one
// of a packed matrix, so these are called AMX registers.
#ifndef INLAY_OPS_CPU_AMX_TILES_H_
#define INLAY_OPS_CPU_AMX_TILES_H_

#include <cstddef>
#include <cstdint>

namespace inlay {

// The shapes of the registers, as LDTILECFG reads them. A register without rows cannot be used.
struct alignas(64) AmxShapes {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  void Set(size_t r, size_t r_rows, size_t r_row_bytes) {
    rows[r] = static_cast<uint8_t>(r_rows);
    row_bytes[r] = static_cast<uint16_t>(r_row_bytes);
  }
};
static_assert(sizeof(AmxShapes) == 64);

#ifdef __x86_64__

// To be used between Configure and Release, by one thread. Inline assembly, because the compiler's
// intrinsics require literal register numbers, and those of g++ 12 do not declare that they read
// memory, so that a write just before may be moved after them.
struct AmxTiles {
  // LDTILECFG; all registers become 0.
  static void Configure(const AmxShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
  // TILERELEASE: from here on a context switch does not save the registers.
  static void Release() { asm volatile("tilerelease"); }

  // TILEZERO.
  template <int r>
  static void Zero() {
    asm volatile("tilezero %%tmm%c0" : : "n"(r));
  }
  // TILELOADD: rows `stride` bytes apart.
  template <int r>
  static void Load(const void* from, size_t stride) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "n"(r) : "memory");
  }
  // TILESTORED.
  template <int r>
  static void Store(void* to, size_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "n"(r) : "memory");
  }
  // TDPBSSD: sums[m][n] += the sum over k and j < 4 of a[m][4 k + j] * b[k][4 n + j], of signed
  // bytes, in 32 bits.
  template <int sums, int a, int b>
  static void AddProducts() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "n"(sums), "n"(a), "n"(b));
  }
  // TDPBSUD: the same with unsigned bytes in b.
  template <int sums, int a, int b>
  static void AddProductsOfUnsigned() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "n"(sums), "n"(a), "n"(b));
  }
  // TDPBF16PS: sums[m][n] += (the sum over k of a[m][2 k] * b[k][2 n]) + (that of a[m][2 k + 1] *
  // b[k][2 n + 1]), of bfloat16, in float. Each sum starts at 0 and takes its products in order, by
  // fused multiply-adds; numbers below the least normal one are 0.
  template <int sums, int a, int b>
  static void AddProductsOfBf16() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "n"(sums), "n"(a), "n"(b));
  }
};

#endif  // __x86_64__

}  // namespace inlay

#endif  // INLAY_OPS_CPU_AMX_TILES_H_
