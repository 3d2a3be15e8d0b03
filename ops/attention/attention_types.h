// The types of attention: stored rows, parameters and new tokens.
#ifndef INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_
#define INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_

#include <algorithm>
#include <cstddef>

#include "ops/attention/kv_shape.h"
#include "ops/views.h"

namespace inlay {

// Long contexts are cut into spans of this many positions, aligned to multiples of it; partial
// results are combined in the order of the spans, so that spans can be computed by different
// threads without changing a bit. A multiple of kKvBlockRows, small enough that several threads
// share a window of 512 where there is one kv head.
inline constexpr size_t kAttentionSpan = 256;

// The stored keys and values of one sequence: the KV block of positions [b * kKvBlockRows, (b + 1)
// * kKvBlockRows) is blocks[b % num_blocks], so that a growing table and a ring are read alike.
struct KvView {
  KvShape shape;
  void* const* blocks = nullptr;
  size_t num_blocks = 0;

  void* Block(size_t b) const { return blocks[b % num_blocks]; }
};

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

// Query heads, each of some token, whose products with a KV block AMX computes together: as many as
// fit a part of the second-level cache.
inline constexpr size_t kAmxMostQueries = 128;
constexpr size_t AmxQueries(size_t head_dim) {
  constexpr size_t kMostElements = 1 << 15, kSide = 16;
  const size_t count = kMostElements / ((head_dim + 31) / 32 * 32) / kSide * kSide;
  return std::clamp(count, kSide, kAmxMostQueries);
}

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_TYPES_H_
