// Causal attention over block-wise stored keys and values, for full and sliding windows alike.
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

// Long contexts are cut into spans of this many positions, aligned; partial results are combined in
// the order of the spans, so that spans can be computed by different threads without changing a
// bit. A multiple of kKvBlockRows.
inline constexpr size_t kAttentionSpan = 1024;

// The rows of one sequence: the block of positions [b * kKvBlockRows, (b + 1) * kKvBlockRows) is
// blocks[b % num_blocks]. A growing table and a ring are the same to a reader.
struct KvView {
  KvShape shape;
  void* const* blocks = nullptr;
  size_t num_blocks = 0;

  void* Block(size_t b) const { return blocks[b % num_blocks]; }
};

// Converts and writes keys and values [tokens, kv_heads * head_dim] to the rows of positions
// [first_position, first_position + tokens). Rounding to 16 bits is to nearest even, and so is that
// to int8 multiples of scale = largest magnitude / 127. Of a row whose largest magnitude is below
// 1e-30 kQ8 keeps zeros; of one that is not finite, only that. `scratch` is [head_dim].
void StoreKv(ConstFloatRows keys, ConstFloatRows values, size_t first_position, const KvView& kv,
             float* scratch);

struct AttentionParams {
  size_t heads =
      0;  // query heads; a multiple of kv_heads: head h reads kv head h / (heads / kv_heads)
  float scale = 0;     // of the scores
  float soft_cap = 0;  // scores become cap * tanh(score / cap); 0: none
  size_t window = 0;   // positions that a token sees, its own included; 0: all
};

// New tokens of one sequence: row t of q and y [tokens, heads * head_dim] is that of position
// first_position + t. Rows of all positions up to the last token's must be stored already.
struct AttentionSegment {
  ConstFloatRows q;
  size_t first_position = 0;
  KvView kv;
  FloatRows y;
};

// Floats of scratch memory that Attention takes, whatever the segments.
constexpr size_t AttentionScratchFloats(size_t heads, size_t kv_heads, size_t head_dim,
                                        size_t threads) {
  constexpr size_t kPartialsPerThread = 12;  // see AttendByTask and AttendBySpan
  return kPartialsPerThread * threads * (heads / kv_heads) * (2 + head_dim);
}

// y[t] = softmax(scale * q[t] . K) V over the positions that the token sees, for all segments,
// whose stored rows have the same shape. Online softmax (Milakov & Gimelshein 2018; Dao et al.
// 2022, alg. 1) over key blocks in order within a span, spans combined in order: the bits of y[t]
// depend on positions alone. Rows of a block outside the token's window or after its position are
// never read into the result, whatever they hold (NaN included). The head dim stays an argument of
// run time: code made for one is no faster (docs/static-vs-dynamic.md).
void Attention(const AttentionParams& params, std::span<const AttentionSegment> segments,
               float* scratch, Team& team);

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_H_
