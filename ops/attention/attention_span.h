// One span of attention: what its kernels are to compute, how they read it, and partial results.
#ifndef INLAY_OPS_ATTENTION_ATTENTION_SPAN_H_
#define INLAY_OPS_ATTENTION_ATTENTION_SPAN_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ops/attention/attention_types.h"
#include "ops/attention/kv_shape.h"

namespace inlay {

// Neighbouring tokens of a segment, at least one.
struct TokenRange {
  size_t first;
  size_t count;
};

// What the tokens of one segment share.
struct AttentionCall {
  const AttentionParams& params;
  const AttentionSegment& segment;

  // Query heads that read one kv head.
  size_t Group() const { return params.heads / segment.kv.shape.kv_heads; }
  // The positions that a token sees, [Begin, End), and the first and last spans that hold them.
  size_t Begin(size_t token) const {
    const size_t end = segment.first_position + token + 1;  // of a causal window
    return params.window == 0 || end < params.window ? 0 : end - params.window;
  }
  size_t End(size_t token) const {
    return segment.first_position + token + 1 + std::min(params.ahead, segment.q.rows - 1 - token);
  }
  size_t FirstSpan(size_t token) const { return Begin(token) / kAttentionSpan; }
  size_t LastSpan(size_t token) const { return (End(token) - 1) / kAttentionSpan; }
  size_t Spans(size_t token) const { return LastSpan(token) - FirstSpan(token) + 1; }

  // How many bytes after KV block `block` the next one lies that a token sees, also if it belongs
  // to the next span, which most often is computed next; 0 after the token's last block.
  intptr_t BytesToNextBlock(size_t block, size_t token) const {
    if ((block + 1) * kKvBlockRows >= End(token)) return 0;
    const KvView& kv = segment.kv;
    return reinterpret_cast<intptr_t>(kv.Block(block + 1)) -
           reinterpret_cast<intptr_t>(kv.Block(block));
  }
};

// A partial result: the softmax-weighted sum over some positions for one query head, in
// Floats(head_dim) floats of memory.
struct Partial {
  float* data;

  static constexpr size_t Floats(size_t head_dim) { return 2 + head_dim; }
  float& largest() const { return data[0]; }  // of the scores
  float& sum() const { return data[1]; }      // of exp(score - largest)
  float* values() const { return data + 2; }  // sums of exp(score - largest) * value
};

// The partial results of the query heads of one kv head, one after the other.
struct Partials {
  float* data;
  size_t head_dim;

  Partial operator[](size_t g) const { return {data + g * Partial::Floats(head_dim)}; }
};

// Computes the partial results of one span, for some tokens and the query heads of one kv head, and
// writes those of the i-th token to partials[i]. Goes block by block for all tokens, so that each
// KV block is read from memory once.
using ComputeSpanOf = void (*)(const AttentionCall& call, const TokenRange& tokens, size_t kv_head,
                               size_t span, const Partials* partials);

// The same by AMX (ops/cpu/extension.h).
namespace amx {
ComputeSpanOf ComputeSpan();
}  // namespace amx

// The keys or the values of one kv head in one KV block, as they lie in memory.
template <class T>
struct KeysOrValues {
  static constexpr bool kScaled = std::is_same_v<T, int8_t>;

  explicit KeysOrValues(const void* memory) : elements(static_cast<const T*>(memory)) {}
  // The scales of the rows, where the type has scales.
  const float* scales(size_t dim) const {
    return reinterpret_cast<const float*>(elements + kKvBlockRows * dim);
  }

  const T* elements;
};

}  // namespace inlay

#endif  // INLAY_OPS_ATTENTION_ATTENTION_SPAN_H_
