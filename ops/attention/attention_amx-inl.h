// Attention by Intel AMX: many query heads by the rows of one KV block after the other.

// Compiled once per CPU target, hence the toggling guard.
#if defined(INLAY_OPS_ATTENTION_ATTENTION_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef INLAY_OPS_ATTENTION_ATTENTION_AMX_INL_H_
#undef INLAY_OPS_ATTENTION_ATTENTION_AMX_INL_H_
#else
#define INLAY_OPS_ATTENTION_ATTENTION_AMX_INL_H_
#endif

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <type_traits>

#include "ops/attention/attention-inl.h"
#include "ops/attention/attention_span.h"
#include "ops/bf16_parts-inl.h"
#include "ops/cpu/amx_product.h"
#include "ops/cpu/kernel_memory.h"

#if HWY_TARGET == HWY_AVX3_DL

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

// e^x for x up to 0, up to 3 ulp, and zero below -87: x = n log(2) + r, a polynomial of r, and n
// added to the exponent. Half as many operations as hn::Exp, which covers the subnormal numbers.
// NaN stays NaN.
HWY_INLINE VPartFloats ExpOfNegative(VPartFloats x) {
  const PartFloats df;
  const hn::RebindToSigned<PartFloats> di;
  // Rounds to an integer, which the lowest bits of the sum then hold.
  const auto rounding = hn::Set(df, 0x1.8p23f);
  const auto shifted = hn::MulAdd(x, hn::Set(df, 0x1.715476p0f), rounding);
  const auto n = hn::Sub(shifted, rounding);
  auto r = hn::MulAdd(n, hn::Set(df, -0x1.62e4p-1f), x);
  r = hn::MulAdd(n, hn::Set(df, -0x1.7f7d1cp-20f), r);
  auto p = hn::Set(df, 1.0f / 720);
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(df, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const auto power = hn::BitCast(df, hn::Add(hn::BitCast(di, p), exponent));
  const auto normal = hn::IfThenElse(hn::IsNaN(x), x, power);
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(df, -87.0f)), normal);
}

// The partial results of one span. Both products of attention are computed in bfloat16, with
// floats for sums: rows of bfloat16 with queries and weights that are rounded to it, and all other
// rows with queries and weights in two parts, as are rows of f32 and f16. What is computed for a
// query depends on its position alone, for one token as for many.
//
// The rows of a KV block are packed once for the queries of many tokens: for 64 rows of 256 floats
// that takes as long as both products of 32 queries.
template <class T, class Tiles>
class AmxSpan {
 public:
  AmxSpan(const AttentionCall& call, const TokenRange& tokens, size_t kv_head, size_t span)
      : call_(call),
        kv_(call.segment.kv),
        tokens_(tokens),
        kv_head_(kv_head),
        dim_(kv_.shape.head_dim),
        group_(call.Group()),
        span_begin_(span * kAttentionSpan) {}

  void Run(const Partials* partials) {
    const size_t queries = tokens_.count * group_;
    const size_t most = AmxQueries(dim_);
    for (size_t first = 0; first < queries; first += most) {
      RunQueries(first, std::min(most, queries - first), partials);
    }
    Tiles::Release();
  }

 private:
  static constexpr int kRowParts = kPartsOf<T>;
  static constexpr int kQueryParts = std::is_same_v<T, hwy::bfloat16_t> ? 1 : 2;
  using Product = AmxProduct<Tiles, kQueryParts, kRowParts>;
  static constexpr size_t kPairs = kKvBlockRows / 2;
  static constexpr size_t kVectorsOfKeys = kKvBlockRows / kAmxSide;
  static_assert(kVectorsOfKeys == 4);

  static constexpr size_t RoundUp(size_t n, size_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
  }

  // The token of a query, and its range of positions in the KV block that begins at `block`.
  size_t Token(size_t query) const { return tokens_.first + query / group_; }
  size_t From(size_t query, size_t block) const {
    return std::clamp(call_.Begin(Token(query)), block, block + kKvBlockRows) - block;
  }
  size_t To(size_t query, size_t block) const {
    return std::clamp(call_.End(Token(query)), block, block + kKvBlockRows) - block;
  }

  // The queries [first, first + count) of the tokens' query heads, token by token.
  void RunQueries(size_t first, size_t count, const Partials* partials) {
    const size_t terms = RoundUp(dim_, kAmxChain);
    const size_t columns = RoundUp(dim_, kAmxSide);
    const size_t rows = count < kAmxSide ? count : RoundUp(count, kAmxSide);
    for (size_t r = 0; r < count; ++r) {
      const size_t head = kv_head_ * group_ + (first + r) % group_;
      SetQuery(r, terms, call_.segment.q.Row(Token(first + r)) + head * dim_, dim_);
    }
    // Rows after the last query are zeros, and see no keys.
    for (size_t r = count; r < rows; ++r) SetQuery(r, terms, kNone, 0);
    std::fill(seen_ + count, seen_ + rows, uint64_t{0});
    std::fill_n(largest_, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sums_, rows, 0.0f);
    std::fill_n(values_, rows * columns, 0.0f);

    Product::Configure(rows);
    const size_t last = std::min(call_.End(Token(first + count - 1)), span_begin_ + kAttentionSpan);
    for (size_t b = std::max(call_.Begin(Token(first)), span_begin_) / kKvBlockRows;
         b * kKvBlockRows < last; ++b) {
      const size_t block_begin = b * kKvBlockRows;
      const size_t begin = From(first, block_begin);
      const size_t end = To(first + count - 1, block_begin);
      ahead_ = call_.BytesToNextBlock(b, Token(first + count - 1));
      const size_t bytes = kv_.shape.KeysOrValuesBytes();
      const char* block = static_cast<const char*>(kv_.Block(b)) + kv_head_ * 2 * bytes;
      const KeysOrValues<T> keys(block), values(block + bytes);

      Score(keys, begin, end, rows);
      for (size_t r = 0; r < count; ++r) {
        const size_t from = From(first + r, block_begin), to = To(first + r, block_begin);
        seen_[r] = from < to ? ~uint64_t{0} >> (kKvBlockRows - (to - from)) << from : 0;
      }
      Weigh(rows, columns, keys.scales(dim_), values.scales(dim_));
      AddValues(values, begin, end, rows, columns);
    }
    for (size_t r = 0; r < count; ++r) {
      const Partial partial = partials[(first + r) / group_][(first + r) % group_];
      partial.largest() = largest_[r];
      partial.sum() = sums_[r];
      // A sum of -0 becomes 0, which it is already where AMX added zeros to it.
      const float* sums = values_ + r * columns;
      for (size_t i = 0; i < dim_; ++i) partial.values()[i] = sums[i] + 0.0f;
    }
  }

  void SetQuery(size_t r, size_t terms, const float* q, size_t dim) {
    uint16_t* to[] = {queries_[0] + r * terms, queries_[1] + r * terms};
    SplitRow<kQueryParts>(q, dim, terms, to);
  }

  // The scores of the keys [begin, end) for all rows of queries, before the keys' scales.
  void Score(KeysOrValues<T> keys, size_t begin, size_t end, size_t rows) {
    const size_t terms = RoundUp(dim_, kAmxChain);
    const size_t stride = terms / 2 * kAmxSide;
    uint32_t* to[] = {packed_[0], packed_[1]};
    for (size_t j = begin / kAmxSide * kAmxSide; j < end; j += 2 * kAmxSide) {
      const size_t tiles = j + kAmxSide < end ? 2 : 1;
      Packer<T> packer(to, stride);
      packer.template Pack<false>(keys.elements + j, kKvBlockRows, tiles * kAmxSide, 0, terms, 0,
                                  dim_, ahead_);
      Product::Run({{queries_[0], queries_[1]}, terms}, {{packed_[0], packed_[1]}, stride}, rows,
                   tiles, terms / kAmxChain, {scores_[0] + j, kKvBlockRows}, /*are_new=*/true);
    }
  }

  // One step of online softmax: makes weights of the scores of the keys that each row of queries
  // sees, zeros of the others, and rescales the rows' sums. Scales are read for rows of q8 only.
  void Weigh(size_t rows, size_t columns, const float* key_scales, const float* value_scales) {
    const PartFloats df;
    const auto scale = hn::Set(df, call_.params.scale);
    const auto lowest = hn::Set(df, -std::numeric_limits<float>::infinity());
    alignas(64) float largest[kAmxMostQueries], factors[kAmxMostQueries];
    for (size_t r = 0; r < rows; ++r) {
      auto most = lowest;
      for (size_t v = 0; v < kVectorsOfKeys; ++v) {
        float* scores = scores_[r] + v * kAmxSide;
        auto score = hn::Load(df, scores);
        if constexpr (KeysOrValues<T>::kScaled) {
          score = hn::Mul(score, hn::LoadU(df, key_scales + v * kAmxSide));
        }
        score = hn::Mul(score, scale);
        if (call_.params.soft_cap != 0) score = SoftCapOf(df, score, call_.params.soft_cap);
        score = hn::IfThenElse(Seen(r, v), score, lowest);
        most = hn::Max(most, score);
        hn::Store(score, df, scores);
      }
      largest[r] = std::max(largest_[r], hn::ReduceMax(df, most));
    }
    for (size_t r = 0; r < rows; r += kAmxSide) {
      const auto before = hn::Load(df, largest_ + r), now = hn::Load(df, largest + r);
      // Zero for the first keys, before which the largest score is -infinity.
      const auto factor = hn::IfThenElse(hn::Eq(before, now), hn::Set(df, 1.0f),
                                         ExpOfNegative(hn::Sub(before, now)));
      hn::Store(factor, df, factors + r);
      hn::Store(now, df, largest_ + r);
    }
    for (size_t r = 0; r < rows; ++r) {
      VPartFloats weights[kVectorsOfKeys];
      const auto now = hn::Set(df, largest[r]);
      for (size_t v = 0; v < kVectorsOfKeys; ++v) {
        const auto score = hn::Load(df, scores_[r] + v * kAmxSide);
        weights[v] = hn::IfThenElseZero(Seen(r, v), ExpOfNegative(hn::Sub(score, now)));
      }
      const auto sum = hn::Add(hn::Add(weights[0], weights[1]), hn::Add(weights[2], weights[3]));
      sums_[r] = factors[r] * sums_[r] + hn::ReduceSum(df, sum);
      for (size_t v = 0; v < kVectorsOfKeys; ++v) {
        // Scales of keys that are not seen may be NaN.
        if constexpr (KeysOrValues<T>::kScaled) {
          const auto value_scale = hn::LoadU(df, value_scales + v * kAmxSide);
          weights[v] = hn::IfThenElseZero(Seen(r, v), hn::Mul(weights[v], value_scale));
        }
      }
      for (size_t v = 0; v < kVectorsOfKeys; v += 2) {
        uint16_t* to[] = {weights_[0][r] + v * kAmxSide, weights_[1][r] + v * kAmxSide};
        SplitVectors<kQueryParts>(weights[v], weights[v + 1], to);
      }
      if (factors[r] != 1.0f) Rescale(factors[r], columns, values_ + r * columns);
    }
  }

  // The keys of a vector that a row of queries sees.
  hn::Mask<PartFloats> Seen(size_t r, size_t v) const {
    return hn::LoadMaskBits(PartFloats(),
                            reinterpret_cast<const uint8_t*>(&seen_[r]) + v * kAmxSide / 8);
  }

  static void Rescale(float factor, size_t columns, float* sums) {
    const PartFloats df;
    for (size_t i = 0; i < columns; i += kAmxSide) {
      hn::Store(hn::Mul(hn::Set(df, factor), hn::Load(df, sums + i)), df, sums + i);
    }
  }

  // Adds the values of the positions [begin, end), times their weights, to the sums of all rows of
  // queries.
  void AddValues(KeysOrValues<T> values, size_t begin, size_t end, size_t rows, size_t columns) {
    for (size_t i = 0; i < columns; i += 2 * kAmxSide) {
      const size_t tiles = i + kAmxSide < columns ? 2 : 1;
      if (AddTiles(values, i, tiles, begin, end, 0, rows, columns)) continue;
      // What is not finite must not reach queries that do not see it.
      Product::Configure(1);
      for (size_t r = 0; r < rows; ++r) {
        if (seen_[r] == 0) continue;
        const size_t from = hwy::Num0BitsBelowLS1Bit_Nonzero64(seen_[r]);
        const size_t to = kKvBlockRows - hwy::Num0BitsAboveMS1Bit_Nonzero64(seen_[r]);
        AddTiles(values, i, tiles, from, to, r, 1, columns);
      }
      Product::Configure(rows);
    }
  }

  // The same for one or two tiles of columns from `column` on and the rows [row, row + rows) of
  // queries. Adds nothing and returns false if there are several rows, and values that are not
  // finite.
  bool AddTiles(KeysOrValues<T> values, size_t column, size_t tiles, size_t begin, size_t end,
                size_t row, size_t rows, size_t columns) {
    const size_t from = begin / kAmxChain * kAmxChain;
    uint32_t* to[] = {packed_[0], packed_[1]};
    Packer<T> packer(to, kPairs * kAmxSide);
    const auto pack = [&]<bool kChecks>() {
      return packer.template Pack<kChecks>(values.elements + column, dim_,
                                           std::min(tiles * kAmxSide, dim_ - column), from,
                                           RoundUp(end, kAmxChain), begin, end, ahead_);
    };
    if (tokens_.count == 1 || rows == 1) {
      pack.template operator()<false>();
    } else if (!pack.template operator()<true>()) {
      return false;
    }
    const size_t words = from / 2 * kAmxSide;
    Product::Run({{weights_[0][row] + from, weights_[1][row] + from}, kKvBlockRows},
                 {{packed_[0] + words, packed_[1] + words}, kPairs * kAmxSide}, rows, tiles,
                 (RoundUp(end, kAmxChain) - from) / kAmxChain,
                 {values_ + row * columns + column, columns}, /*are_new=*/false);
    return true;
  }

  static constexpr float kNone[1] = {};
  static constexpr size_t kMostElements = AmxQueries(kMaxHeadDim) * kMaxHeadDim;

  const AttentionCall& call_;
  const KvView& kv_;
  const TokenRange& tokens_;
  intptr_t ahead_ = 0;
  const size_t kv_head_, dim_, group_, span_begin_;

  // 450 KiB, of which a head dim of 256 uses all but 96.
  alignas(64) uint16_t queries_[2][kMostElements];
  alignas(64) float values_[kMostElements];  // sums of the values, times their weights
  alignas(64) uint32_t packed_[2][kMaxHeadDim * kAmxSide];  // two tiles of keys or values
  alignas(64) float scores_[kAmxMostQueries][kKvBlockRows];
  alignas(64) uint16_t weights_[2][kAmxMostQueries][kKvBlockRows];
  // Of each row of queries, as in Partial, and the keys of the KV block that it sees.
  alignas(64) float largest_[kAmxMostQueries];
  float sums_[kAmxMostQueries];
  uint64_t seen_[kAmxMostQueries];
};

// Computes the partial results of one span as ComputeSpan does, by the AMX instructions of `Tiles`.
template <class Tiles>
void SpanByAmx(const AttentionCall& call, const TokenRange& tokens, size_t kv_head, size_t span,
               const Partials* partials) {
  const auto run = [&]<class T>() {
    using Span = AmxSpan<T, Tiles>;
    static_assert(sizeof(Span) <= kAmxMemory && std::is_trivially_destructible_v<Span>);
    (new (KernelMemory()) Span(call, tokens, kv_head, span))->Run(partials);
  };
  switch (call.segment.kv.shape.type) {
    case KvType::kF32:
      return run.template operator()<float>();
    case KvType::kF16:
      return run.template operator()<hwy::float16_t>();
    case KvType::kBF16:
      return run.template operator()<hwy::bfloat16_t>();
    case KvType::kQ8:
      return run.template operator()<int8_t>();
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET

#endif  // toggling guard
