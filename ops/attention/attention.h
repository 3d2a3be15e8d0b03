// Attention over block-wise stored keys and values, for full and sliding windows alike.
#ifndef INLAY_OPS_ATTENTION_ATTENTION_H_
#define INLAY_OPS_ATTENTION_ATTENTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/attention_types.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// Converts and writes keys and values [tokens, kv_heads * head_dim] to the rows of positions
// [first_position, first_position + tokens). Rounding is to nearest even: to 16 bits, or
// for kQ8 to int8 multiples of scale = largest magnitude / 127. kQ8 stores zeros for a head's row
// whose largest magnitude is below 1e-30, and a NaN scale for one that is not finite. `scratch` is
// [head_dim].
void StoreKv(ConstFloatRows keys, ConstFloatRows values, size_t first_position, const KvView& kv,
             float* scratch);

// Floats of scratch memory that Attention needs, whatever the segments and the CPU target.
constexpr size_t AttentionScratchFloats(size_t heads, size_t kv_heads, size_t head_dim,
                                        size_t threads) {
  constexpr size_t kPartialsPerThread = 12;  // see AttendByTask and AttendBySpan
  const size_t partials =
      std::max(kPartialsPerThread * (heads / kv_heads), 2 * AmxQueries(head_dim));
  return threads * partials * (2 + head_dim);
}

// y[t] = softmax(scale * q[t] . K) V over the positions that the token sees, for all segments,
// whose stored rows have the same shape. Online softmax (Milakov & Gimelshein 2018; Dao et al.
// 2022, alg. 1) over KV blocks in order within a span, spans combined in order: the bits of y[t]
// depend on positions alone. Rows of a KV block that the token does not see are never read into the
// result, whatever they hold (NaN included). Sums are floats; where the CPU has products of
// bfloat16, these are used for rows of bf16, whose queries and weights they round, and with AMX
// also for all others, whose numbers then lose 2^-16 (docs/kernels.md has the errors). The head
// dim is a run-time argument: code compiled for one head dim is no faster
// (docs/static-vs-dynamic.md).
void Attention(const AttentionParams& params, std::span<const AttentionSegment> segments,
               float* scratch, Team& team);

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_H_
