// Attention over block-wise stored keys and values, for full and sliding windows alike.
#ifndef INLAY_OPS_ATTENTION_ATTENTION_H_
#define INLAY_OPS_ATTENTION_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/attention/kv_shape.h"
#include "ops/attention/kv_type.h"
#include "ops/team.h"
#include "ops/views.h"

namespace inlay {

// Long contexts are cut into spans of this many positions, aligned to multiples of it; partial
// results are combined in the order of the spans, so that spans can be computed by different
// threads without changing a bit. A multiple of kKvBlockRows.
inline constexpr size_t kAttentionSpan = 1024;

// The stored keys and values of one sequence: the KV block of positions [b * kKvBlockRows, (b + 1)
// * kKvBlockRows) is blocks[b % num_blocks], so that a growing table and a ring are read alike.
struct KvView {
  KvShape shape;
  void* const* blocks = nullptr;
  size_t num_blocks = 0;

  void* Block(size_t b) const { return blocks[b % num_blocks]; }
};

// Converts and writes keys and values [tokens, kv_heads * head_dim] to the rows of positions
// [first_position, first_position + tokens). Rounding is to nearest even: to 16 bits, or
// for kQ8 to int8 multiples of scale = largest magnitude / 127. kQ8 stores zeros for a head's row
// whose largest magnitude is below 1e-30, and a NaN scale for one that is not finite. `scratch` is
// [head_dim].
void StoreKv(ConstFloatRows keys, ConstFloatRows values, size_t first_position, const KvView& kv,
             float* scratch);

struct AttentionParams {
  // Query heads, a multiple of kv_heads: head h reads kv head h / (heads / kv_heads).
  size_t heads = 0;
  float scale = 0;     // multiplies the scores
  float soft_cap = 0;  // scores become cap * tanh(score / cap); 0: none
  size_t window = 0;   // positions up to its own that a token sees, its own included; 0: all
  size_t ahead = 0;    // positions after its own that it sees, up to the last token's; 0: causal
};

// New tokens of one sequence: row t of q and y [tokens, heads * head_dim] is that of position
// first_position + t. Keys and values of all positions up to the last token's must be stored
// already.
struct AttentionSegment {
  ConstFloatRows q;
  size_t first_position = 0;
  KvView kv;
  FloatRows y;
};

// Floats of scratch memory that Attention needs, whatever the segments.
constexpr size_t AttentionScratchFloats(size_t heads, size_t kv_heads, size_t head_dim,
                                        size_t threads) {
  constexpr size_t kPartialsPerThread = 12;  // see AttendByTask and AttendBySpan
  return kPartialsPerThread * threads * (heads / kv_heads) * (2 + head_dim);
}

// y[t] = softmax(scale * q[t] . K) V over the positions that the token sees, for all segments,
// whose stored rows have the same shape. Online softmax (Milakov & Gimelshein 2018; Dao et al.
// 2022, alg. 1) over KV blocks in order within a span, spans combined in order: the bits of y[t]
// depend on positions alone. Rows of a KV block that the token does not see are never read into the
// result, whatever they hold (NaN included). The head dim is a run-time
// argument: code compiled for one head dim is no faster (docs/static-vs-dynamic.md).
void Attention(const AttentionParams& params, std::span<const AttentionSegment> segments,
               float* scratch, Team& team);

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_H_
