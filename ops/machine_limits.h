// What this machine can do at most: the figures that speeds are reported against.
#ifndef INLAY_OPS_MACHINE_LIMITS_H_
#define INLAY_OPS_MACHINE_LIMITS_H_

#include "ops/thread_pool.h"

namespace inlay {

// Bytes per second that the pool's threads together read from memory that no cache holds: the best
// of several passes over `bytes`, each thread reading its own part from front to back.
double MeasureReadBandwidth(ThreadPool& pool, size_t bytes = size_t{512} << 20);

// Multiplications and additions per second of one core on the instructions that the matmul kernels
// use, operands in registers: the best of several runs.
struct DotPeaks {
  double int8 = 0;  // bytes to 32-bit sums
  double bf16 = 0;  // bfloat16 pairs to float sums
  double f32 = 0;   // fused multiply-adds
};
DotPeaks MeasureDotPeaks();

}  // namespace inlay

#endif  // INLAY_OPS_MACHINE_LIMITS_H_
