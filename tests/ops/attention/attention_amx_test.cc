// Attention by Intel AMX, whose instructions are emulated: what else it consists of runs here on
// any CPU with the target that it is compiled for.
#define INLAY_AMX
#define HWY_WANT_AVX3_DL
#include "ops/cpu/extension.h"
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS INLAY_DISABLED_TARGETS(0)

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "ops/attention/attention_span.h"
#include "tests/ops/attention/stored_rows.h"
#include "tests/ops/emulated_tiles.h"
#include "tests/ops/op_test.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/ops/attention/attention_amx_test.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"
#include "ops/attention/attention_amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {
namespace {

#if INLAY_IS_COMPILED
void ComputeSpanEmulated(const AttentionCall& call, const TokenRange& tokens, size_t kv_head,
                         size_t span, const Partials* partials) {
  SpanByAmx<EmulatedTiles>(call, tokens, kv_head, span, partials);
}
#else
void ComputeSpanEmulated(const AttentionCall&, const TokenRange&, size_t, size_t, const Partials*) {
}
#endif

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace inlay {
namespace {

HWY_EXPORT(ComputeSpanEmulated);

class AmxAttentionTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!ForceTarget("AVX3_DL")) GTEST_SKIP() << "this CPU, or this build, lacks AVX3_DL";
  }
  void TearDown() override { ForceTarget(""); }
};

// The partial results of all tokens, kv heads and query heads in a sequence's first span, each with
// Partial::Floats(dim) floats, computed for `step` tokens at a time.
std::vector<float> PartialsOf(ComputeSpanOf compute, const AttentionParams& params,
                              const AttentionSegment& segment, size_t step) {
  const KvShape& shape = segment.kv.shape;
  const AttentionCall call = {params, segment};
  const size_t floats = call.Group() * Partial::Floats(shape.head_dim);
  const size_t tokens = segment.q.rows;
  std::vector<float> all(shape.kv_heads * tokens * floats, NAN);
  for (size_t head = 0; head < shape.kv_heads; ++head) {
    for (size_t t = 0; t < tokens; t += step) {
      const TokenRange range = {t, std::min(step, tokens - t)};
      std::vector<Partials> partials;
      for (size_t i = 0; i < range.count; ++i) {
        partials.push_back({&all[(head * tokens + t + i) * floats], shape.head_dim});
      }
      compute(call, range, head, 0, partials.data());
      EXPECT_FALSE(EmulatedTiles::configured()) << "every later change of threads takes longer";
    }
  }
  return all;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && inlay::SameBits(a.data(), b.data(), a.size());
}

// One segment of new tokens after others, all in the first span.
struct Case {
  Case(KvShape shape, size_t group, size_t first, size_t tokens, AttentionParams p)
      : store(shape, BlocksFor(first + tokens)),
        q(RandomArray(tokens, shape.kv_heads * group * shape.head_dim, 13)),
        y(tokens, q.view().cols),
        params(p) {
    params.heads = shape.kv_heads * group;
    Sequence(shape, first + tokens).StoreInto(store, 0, first + tokens);
    segment = {q, first, store.view, y};
  }

  Store store;
  Array q, y;
  AttentionParams params;
  AttentionSegment segment;
};

TEST_F(AmxAttentionTest, MatchesReferenceHoweverTokensAreBatched) {
  const ComputeSpanOf emulated = HWY_DYNAMIC_POINTER(ComputeSpanEmulated);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    double worst = 0;
    for (const size_t dim : {1, 24, 40, 64, 100}) {
      for (const size_t window : {0, 5, 70}) {
        const KvShape shape = {dim % 3 == 0 ? size_t{2} : size_t{1}, dim, type};
        const Case c(shape, 1 + dim % 5, 60, 20,
                     {.scale = 1 / std::sqrt(static_cast<float>(dim)),
                      .soft_cap = window == 5 ? 2.0f : 0.0f,
                      .window = window,
                      .ahead = dim == 24 ? window : 0});
        const std::vector<float> all = PartialsOf(emulated, c.params, c.segment, 20);
        for (const size_t step : {1, 7}) {
          ASSERT_TRUE(SameBits(PartialsOf(emulated, c.params, c.segment, step), all))
              << "dim " << dim << ", window " << window << ", " << step << " tokens at a time";
        }
        // As WriteResult does, but token by token.
        const size_t group = c.params.heads / shape.kv_heads, floats = Partial::Floats(dim);
        for (size_t h = 0; h < c.params.heads; ++h) {
          for (size_t t = 0; t < 20; ++t) {
            const float* p = &all[((h / group * 20 + t) * group + h % group) * floats];
            for (size_t i = 0; i < dim; ++i) {
              c.segment.y.Row(t)[h * dim + i] = p[2 + i] / p[1];
            }
          }
        }
        const double nmse = Nmse(c.y, Reference(c.params, c.q, 60, c.store));
        ASSERT_LE(nmse, type == KvType::kBF16 ? (dim < 24 ? 2e-4 : 2e-5) : 1e-9)
            << "dim " << dim << ", window " << window;
        worst = std::max(worst, nmse);
      }
    }
    std::printf("type %d: worst NMSE %.2g\n", static_cast<int>(type), worst);
  }
}

// More queries than are multiplied at once.
TEST_F(AmxAttentionTest, ManyQueries) {
  const ComputeSpanOf emulated = HWY_DYNAMIC_POINTER(ComputeSpanEmulated);
  const Case c({1, 16, KvType::kF32}, 3, 5, kAmxMostQueries / 2, {.scale = 0.25f});
  EXPECT_TRUE(SameBits(PartialsOf(emulated, c.params, c.segment, kAmxMostQueries / 2),
                       PartialsOf(emulated, c.params, c.segment, 1)));
}

// AMX makes zeros of subnormal sums, and adds zeros to the sums of tokens that see less than others
// of their batch: -0 becomes 0 there, and a subnormal sum 0.
TEST_F(AmxAttentionTest, SmallSumsAreTheSameInAnyBatch) {
  const ComputeSpanOf emulated = HWY_DYNAMIC_POINTER(ComputeSpanEmulated);
  const size_t tokens = 80;
  const Case c({1, 2, KvType::kBF16}, 1, 0, tokens, {.scale = 1});
  const Array keys(tokens, 2), values(tokens, 2);
  for (size_t t = 0; t < tokens; ++t) {
    // The last scores are larger by 60, whose factor makes a sum of 2^-60 subnormal.
    keys.At(t, 0) = t < 70 ? 1.0f : 61.0f;
    // The first sum of tokens 33 to 63 is -2^-127, which becomes -0; the second shrinks.
    values.At(t, 0) = t == 5 ? 0x1p-126f : t == 33 ? -0x1.8p-126f : 0.0f;
    values.At(t, 1) = t == 3 ? -0x1p-60f : 0.0f;
    c.q.At(t, 0) = 1;
    c.q.At(t, 1) = 0;
    keys.At(t, 1) = 0;
  }
  StoreRows(keys, values, 0, c.store.view);
  const std::vector<float> all = PartialsOf(emulated, c.params, c.segment, tokens);
  EXPECT_TRUE(SameBits(PartialsOf(emulated, c.params, c.segment, 1), all));
  EXPECT_EQ(all[40 * Partial::Floats(2) + 2], 0);
  EXPECT_LT(all[40 * Partial::Floats(2) + 3], 0);
  EXPECT_EQ(all[79 * Partial::Floats(2) + 3], 0);
}

TEST_F(AmxAttentionTest, DoesWhatIsEmulated) {
  if (!ForceTarget("AVX3_DL_AMX")) GTEST_SKIP() << "this CPU lacks AMX";
  const ComputeSpanOf emulated = HWY_DYNAMIC_POINTER(ComputeSpanEmulated);
  for (const KvType type : {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8}) {
    const Case c({2, 100, type}, 3, 60, 20, {.scale = 0.1f});
    EXPECT_TRUE(SameBits(PartialsOf(amx::ComputeSpan(), c.params, c.segment, 20),
                         PartialsOf(emulated, c.params, c.segment, 20)))
        << "type " << static_cast<int>(type);
  }
}

}  // namespace
}  // namespace inlay
#endif  // HWY_ONCE
