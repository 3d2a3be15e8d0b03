// The peak rates of this machine, against which speeds are reported.
#ifndef INLAY_OPS_CPU_MACHINE_LIMITS_H_
#define INLAY_OPS_CPU_MACHINE_LIMITS_H_

#include <cstddef>
#include <string_view>

#include "ops/quant/weight_type.h"
#include "ops/team.h"

namespace inlay {

// Bytes per second that the team's threads together read from a buffer of `bytes` (rounded up to
// whole pages of 2 MiB, requested as for packed weights): the best of several passes in several
// access patterns. Each thread reads its own share from front to back, a MiB at a time as 1, 2, 4
// or 8 streams, with and without prefetching. What fits a cache is read from there, so to measure
// memory the buffer must be several times as large as the caches. Runs for 0.4 s or more; returns 0
// if there is not enough memory.
double MeasureReadBandwidth(Team& team, size_t bytes = size_t{512} << 20);

// The dot products that the matmul kernels make: of bytes to 32-bit sums, of bfloat16 pairs to
// float sums, and fused multiply-adds of floats.
enum class Dot { kInt8, kBF16, kF32 };

// "int8", "bf16", "f32".
const char* DotName(Dot dot);

// The dot products that bound the speed of products with weights of a type.
Dot DotOf(WeightType type);

// Multiplications and additions per second, operands in registers: the best of several runs.
struct DotPeaks {
  double int8 = 0;
  double bf16 = 0;
  double f32 = 0;

  // Where there are no instructions for bfloat16, conversion to float is the faster way.
  double Of(Dot dot) const {
    return dot == Dot::kInt8 ? int8 : dot == Dot::kBF16 && bf16 > f32 ? bf16 : f32;
  }
};
// What `threads` >= 1 threads reach together, all at once: hardware threads of one core share its
// units, and threads beyond those of the hardware add nothing. On the best CPU target that this CPU
// runs, whichever is in use, or on the named one. Not to be called while another thread runs
// kernels.
DotPeaks MeasureDotPeaks(size_t threads, std::string_view target = "");

}  // namespace inlay

#endif  // INLAY_OPS_CPU_MACHINE_LIMITS_H_
