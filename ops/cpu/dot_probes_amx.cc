#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "ops/cpu/amx_tiles.h"
#include "ops/cpu/dot_probes.h"

namespace inlay::amx {
namespace {

#ifdef __x86_64__
// Four sums are enough: an instruction has a latency of 52 cycles, and the next starts after 16.
// `kBytes` are those of an element: 1 for int8, 2 for bfloat16, of which an instruction takes half
// as many.
template <size_t kBytes>
double Rounds(size_t rounds, int32_t seed, float* out) {
  constexpr size_t kRows = 16, kRowBytes = 64;
  AmxShapes shapes;
  for (size_t r = 0; r < 8; ++r) shapes.Set(r, kRows, kRowBytes);
  // The bytes of a bfloat16 are equal, too: of normal numbers, as long as `seed` is above 0.
  alignas(64) int8_t operand[kRows * kRowBytes];
  std::fill_n(operand, sizeof(operand), static_cast<int8_t>(seed));
  AmxTiles::Configure(shapes);
  AmxTiles::Load<4>(operand, kRowBytes);
  AmxTiles::Load<5>(operand, kRowBytes);
  AmxTiles::Load<6>(operand, kRowBytes);
  AmxTiles::Load<7>(operand, kRowBytes);
  const auto add = []<int sums, int a, int b>() {
    if constexpr (kBytes == 1) {
      AmxTiles::AddProducts<sums, a, b>();
    } else {
      AmxTiles::AddProductsOfBf16<sums, a, b>();
    }
  };
  for (size_t i = 0; i < rounds; ++i) {
    add.template operator()<0, 4, 6>();
    add.template operator()<1, 4, 7>();
    add.template operator()<2, 5, 6>();
    add.template operator()<3, 5, 7>();
  }
  alignas(64) int32_t sums[kRows * kRowBytes / sizeof(int32_t)];
  AmxTiles::Store<0>(sums, kRowBytes);
  AmxTiles::Release();
  *out = static_cast<float>(sums[0]);
  return 4.0 * 2 * kRows * (kRowBytes / kBytes) * (kRowBytes / sizeof(int32_t));
}
#else
template <size_t kBytes>
double Rounds(size_t, int32_t, float*) {
  assert(false);
  return 0;
}
#endif

}  // namespace

DotProbes GetDotProbes() {
  DotProbes probes = plain::GetDotProbes();
  probes.int8 = Rounds<1>;
  probes.bf16 = Rounds<2>;
  return probes;
}

}  // namespace inlay::amx
