// Kernels that only multiply and add, to measure the peak rate of a core.
#ifndef INLAY_OPS_CPU_DOT_PROBES_H_
#define INLAY_OPS_CPU_DOT_PROBES_H_

#include <cstddef>
#include <cstdint>

namespace inlay {

// Rounds of a matmul's multiply-adds of bytes, bfloat16 or float. Each returns how many operations
// a round does: a multiplication and an addition count as two. `seed` decides the operands, `*out`
// gets the sum of the results.
struct DotProbes {
  using Rounds = double (*)(size_t rounds, int32_t seed, float* out);
  Rounds int8, bf16, f32;
};

// The probes of the CPU target in use, without an extension and with one (ops/cpu/extension.h).
namespace plain {
DotProbes GetDotProbes();
}
namespace vnni {
DotProbes GetDotProbes();
}
namespace amx {
DotProbes GetDotProbes();
}
namespace dotprod {
DotProbes GetDotProbes();
}
namespace i8mm {
DotProbes GetDotProbes();
}

}  // namespace inlay

#endif  // INLAY_OPS_CPU_DOT_PROBES_H_
