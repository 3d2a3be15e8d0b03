#include "ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "tests/ops/attention/stored_rows.h"
#include "tests/ops/op_test.h"
#include "tests/ops/sharing_team.h"

namespace inlay {
namespace {

using AttentionTest = OnEveryTarget;
INSTANTIATE_TEST_SUITE_P(Targets, AttentionTest, testing::ValuesIn([] {
                           std::vector<std::string> targets = PlainTargets();
                           const std::string best = RunnableTargets().front();
                           if (best == "AVX3_DL_AMX") targets.push_back(best);
                           return targets;
                         }()),
                         [](const auto& info) { return info.param; });

constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16, KvType::kQ8};
constexpr const char* kTypeNames[] = {"f32", "f16", "bf16", "q8"};

// The attention of one or more segments, with scratch memory of NaN.
void Attend(const AttentionParams& params, const std::vector<AttentionSegment>& segments,
            Team& team) {
  const KvShape& shape = segments.front().kv.shape;
  std::vector<float> scratch(
      AttentionScratchFloats(params.heads, shape.kv_heads, shape.head_dim, team.threads()), NAN);
  Attention(params, segments, scratch.data(), team);
}

// Where the CPU multiplies pairs of bfloat16, queries and weights are rounded to it for rows of it.
// AMX multiplies those of other types in two parts, which leaves 2^-16 of a number out.
double Bound(KvType type, size_t dim, const std::string& target) {
  const bool is_amx = target == "AVX3_DL_AMX";
  if (type == KvType::kBF16 && (is_amx || target == "AVX3_ZEN4")) return dim < 24 ? 2e-4 : 2e-5;
  return !is_amx ? 1e-12 : dim < 24 ? 1e-8 : 1e-9;
}

TEST_P(AttentionTest, MatchesReference) {
  SharingTeam team(2);
  size_t combination = 0;
  for (KvType type : kKvTypes) {
    double worst = 0;
    for (size_t dim : {1, 3, 24, 64, 100, 256}) {
      const size_t kv_heads = dim % 3 + 1, group = dim % 4 + 1;
      const KvShape shape = {kv_heads, dim, type};
      for (size_t first : {0, 1, 63, 64, 130, 1090}) {
        const size_t tokens = first == 64 ? 70 : first % 3 + 1;
        const Sequence sequence(shape, first + tokens);
        Store store(shape, BlocksFor(first + tokens));
        sequence.StoreInto(store, 0, first + tokens);
        const Array q = RandomArray(tokens, kv_heads * group * dim, 13, 1, dim % 5);
        for (size_t window : {0, 1, 5, 64, 100}) {
          // 13 has no factor in common with the numbers of windows and of all else that varies
          // here, so that each value is still met, in many of its combinations.
          if (++combination % 13 != 0 && SmallTests()) continue;
          const AttentionParams params = {kv_heads * group, 1 / std::sqrt(static_cast<float>(dim)),
                                          window == 5 ? 2.0f : 0.0f, window,
                                          dim == 24 ? window : 0};
          const Array y(tokens, q.view().cols, first % 3);
          Attend(params, {{q, first, store.view, y}}, team);
          const double nmse = Nmse(y, Reference(params, q, first, store));
          ASSERT_LE(nmse, Bound(type, dim, GetParam()))
              << "dim " << dim << ", first " << first << ", window " << window;
          worst = std::max(worst, nmse);
        }
      }
    }
    std::printf("%s rows: worst NMSE %.2g\n", kTypeNames[static_cast<size_t>(type)], worst);
  }
}

// Tokens that see later ones: all of them, or as many as before them, within a span and over
// several. The same bits whether one thread computes all spans of a token or several do.
TEST_P(AttentionTest, TokensMaySeeLaterOnes) {
  constexpr size_t kAll = std::numeric_limits<size_t>::max();
  const KvShape shape = {1, 24, KvType::kF32};
  const size_t positions = 2 * kAttentionSpan + 10;
  const Sequence sequence(shape, positions);
  Store store(shape, BlocksFor(positions));
  sequence.StoreInto(store, 0, positions);
  Team one(1);
  SharingTeam many(3);
  // Ten tokens are few enough for spans to be shared out.
  for (const auto& [first, tokens] : {std::pair<size_t, size_t>{0, 150},
                                      {kAttentionSpan - 20, 70},
                                      {kAttentionSpan - 5, 10},
                                      {2 * kAttentionSpan, 10}}) {
    const Array q = RandomArray(tokens, 2 * 24, 13);
    for (const auto& [window, ahead] :
         {std::pair<size_t, size_t>{0, kAll}, {0, 1}, {1, 1}, {17, 16}, {1030, 1029}}) {
      const AttentionParams params = {2, 0.2f, 0, window, ahead};
      const Array y(tokens, 2 * 24), shared(tokens, 2 * 24);
      Attend(params, {{q, first, store.view, y}}, one);
      EXPECT_LE(Nmse(y, Reference(params, q, first, store)), Bound(KvType::kF32, 24, GetParam()))
          << "from " << first << ", window " << window << ", ahead " << ahead;
      Attend(params, {{q, first, store.view, shared}}, many);
      EXPECT_TRUE(SameBits(y, shared)) << "from " << first << ", window " << window;
    }
  }
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  SharingTeam team(1);
  const KvShape shape = {1, 32, KvType::kF32};
  const Sequence sequence(shape, 300);
  for (size_t i = 0; i < sequence.keys.size(); ++i) sequence.keys.data()[i] *= 100;
  Store store(shape, BlocksFor(300));
  sequence.StoreInto(store, 0, 300);
  const Array q = RandomArray(1, 32, 3), y(1, 32);
  const AttentionParams params = {1, 1, 0, 0};
  Attend(params, {{q, 299, store.view, y}}, team);
  EXPECT_LE(Nmse(y, Reference(params, q, 299, store)), 1e-8);
}

// The same tokens in any batches, on any number of threads; every row that a token does not see is
// NaN when its batch is computed.
TEST_P(AttentionTest, BitsDependOnPositionsAlone) {
  for (KvType type : kKvTypes) {
    for (size_t kv_heads : {1, 2}) {
      for (size_t window : {0, 90, 1500}) {
        const KvShape shape = {kv_heads, 40, type};
        if (SmallTests() && (kv_heads < 2 || window == 90)) continue;
        // The first tokens end a span of attention, the others begin the next.
        const size_t heads = kv_heads * 3, first = 2040, tokens = SmallTests() ? 20 : 110,
                     count = first + tokens;
        const Sequence sequence(shape, count);
        const AttentionParams params = {heads, 0.2f, 30, window};
        const Array q = RandomArray(tokens, heads * 40, 5), all(tokens, heads * 40);
        Store full(shape, BlocksFor(count));
        sequence.StoreInto(full, 0, count);
        Team one(1);
        Attend(params, {{q, first, full.view, all}}, one);
        for (size_t threads : {1, 2, 3}) {
          SharingTeam team(threads);
          for (size_t step : {1, 2, 7, 64}) {
            if (SmallTests() && (threads < 3 || step < 7)) continue;
            Store store(shape, BlocksFor(count));
            sequence.StoreInto(store, 0, first);
            const Array y(tokens, heads * 40);
            size_t unseen = 0;
            for (size_t t = 0; t < tokens; t += step) {
              const size_t n = std::min(step, tokens - t);
              sequence.StoreInto(store, first + t, n);
              for (; window != 0 && unseen + window < first + t + 1; ++unseen) {
                store.Poison(unseen);
              }
              Attend(params, {{q.view().Slice(t, n), first + t, store.view, y.view().Slice(t, n)}},
                     team);
            }
            ASSERT_TRUE(SameBits(y, all)) << threads << " threads, " << step << " at a time, "
                                          << kv_heads << " kv heads, window " << window;
          }
        }
      }
    }
  }
}

// Rows that a token of the batch sees and others do not.
TEST_P(AttentionTest, WhatIsNotFiniteReachesOnlyTokensThatSeeIt) {
  Team team(1);
  for (KvType type : kKvTypes) {
    const KvShape shape = {2, 40, type};
    const size_t first = 70, tokens = 20, bad = first + 9;
    const Sequence sequence(shape, first + tokens);
    const AttentionParams params = {6, 0.2f, 0, 0};
    const Array q = RandomArray(tokens, 6 * 40, 5), before(tokens, 6 * 40), y(tokens, 6 * 40);
    // A key alone must not be as if it were unseen.
    for (const std::initializer_list<bool> which :
         {std::initializer_list<bool>{false, true}, std::initializer_list<bool>{false}}) {
      Store store(shape, BlocksFor(first + tokens));
      sequence.StoreInto(store, 0, first + tokens);
      Attend(params, {{q, first, store.view, before}}, team);
      store.Poison(bad, which);
      Attend(params, {{q, first, store.view, y}}, team);
      for (size_t t = 0; t < tokens; ++t) {
        if (first + t >= bad) {
          EXPECT_TRUE(std::isnan(y.At(t, 0))) << "token " << t;
          continue;
        }
        for (size_t i = 0; i < y.view().cols; ++i) {
          ASSERT_EQ(y.At(t, i), before.At(t, i)) << "token " << t << ", element " << i;
        }
      }
    }
  }
}

TEST_P(AttentionTest, RingAndGrowingTableGiveTheSameBits) {
  SharingTeam team(2);
  for (KvType type : kKvTypes) {
    const KvShape shape = {2, 24, type};
    const size_t window = 70, step = 9, count = 700;
    // A window and a step that may both start in the middle of a block.
    const size_t ring_blocks = BlocksFor(window - 1 + step) + 1;
    Store ring(shape, ring_blocks), table(shape, BlocksFor(count));
    const Sequence sequence(shape, count);
    const AttentionParams params = {4, 0.3f, 0, window};
    const Array q = RandomArray(count, 4 * 24, 6);
    for (size_t t = 0; t < count; t += step) {
      const size_t n = std::min(step, count - t);
      sequence.StoreInto(ring, t, n);
      sequence.StoreInto(table, t, n);
      const Array a(n, 4 * 24), b(n, 4 * 24);
      Attend(params, {{q.view().Slice(t, n), t, ring.view, a}}, team);
      Attend(params, {{q.view().Slice(t, n), t, table.view, b}}, team);
      ASSERT_TRUE(SameBits(a, b)) << t;
      ASSERT_FALSE(std::isnan(a.At(n - 1, 0)));
    }
  }
}

// v rounded to a multiple of the type's unit in the last place at v, ties to even.
double Rounded(float v, int fraction_bits, int min_exponent, double overflow) {
  if (v == 0 || std::isinf(v)) return v;
  const int exponent = std::max(std::ilogb(v), min_exponent);
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  const double rounded = std::nearbyint(v / unit) * unit;
  return std::abs(rounded) >= overflow ? std::copysign(INFINITY, v) : rounded;
}

TEST_P(AttentionTest, StoredValuesAreRoundedToNearestEven) {
  const size_t dim = 61;
  for (KvType type : {KvType::kF16, KvType::kBF16}) {
    const KvShape shape = {1, dim, type};
    Store store(shape, 1);
    std::mt19937 generator(3);
    for (int round = 0; round < 300; ++round) {
      const Array values(1, dim, round % 4);
      for (size_t i = 0; i < dim; ++i) {
        // Any exponent; half the values halfway between two of the type, or next to it.
        uint32_t bits = generator();
        if (type == KvType::kF16 && round % 2 == 0) {
          bits = (bits & 0x807FFFFFu) | (100 + generator() % 45) << 23;
        }
        const uint32_t low = type == KvType::kF16 ? 13 : 16;
        if (generator() % 2) bits = (bits >> low << low) + (1u << (low - 1)) + generator() % 3 - 1;
        std::memcpy(&values.data()[i], &bits, 4);
      }
      StoreRows(values, values, round % kKvBlockRows, store.view);
      for (size_t i = 0; i < dim; ++i) {
        const float v = values.data()[i];
        // A finite number beyond the range of f16 becomes its largest.
        const float in_range = std::isfinite(v) ? std::clamp(v, -65504.0f, 65504.0f) : v;
        const double expected = type == KvType::kF16 ? Rounded(in_range, 10, -14, 65520)
                                                     : Rounded(v, 7, -126, std::ldexp(1.0, 128));
        const double key = store.Value(round % kKvBlockRows, 0, false, i);
        if (std::isnan(v)) {
          ASSERT_TRUE(std::isnan(key));
        } else {
          ASSERT_EQ(key, expected) << v;
          ASSERT_EQ(store.Value(round % kKvBlockRows, 0, true, i), expected);
        }
      }
    }
  }
}

// Each element is the nearest multiple of the row's scale, which makes the largest 127.
TEST_P(AttentionTest, Q8RowsAreRoundedToTheNearestMultipleOfTheirScale) {
  std::mt19937 generator(4);
  for (size_t dim : {1, 5, 61, 64, 128}) {
    const KvShape shape = {2, dim, KvType::kQ8};
    Store store(shape, 1);
    for (int round = 0; round < 200; ++round) {
      const float magnitude = std::ldexp(1.0f, static_cast<int>(generator() % 120) - 60);
      Array keys = RandomArray(1, 2 * dim, 2 * round, magnitude, round % 4);
      Array values = RandomArray(1, 2 * dim, 2 * round + 1, magnitude, round % 3);
      const size_t position = static_cast<size_t>(round) % kKvBlockRows;
      StoreRows(keys, values, position, store.view);
      for (size_t head = 0; head < 2; ++head) {
        for (bool of_value : {false, true}) {
          const Array& from = of_value ? values : keys;
          double largest = 0;
          for (size_t i = 0; i < dim; ++i)
            largest = std::max<double>(largest, std::abs(from.At(0, head * dim + i)));
          const double scale = store.Scale(position, head, of_value);
          ASSERT_NEAR(scale, largest / 127, largest * 1e-7);
          for (size_t i = 0; i < dim; ++i) {
            const double stored = store.Value(position, head, of_value, i);
            ASSERT_NEAR(stored, from.At(0, head * dim + i), scale * 0.50001) << dim << " " << i;
            ASSERT_LE(std::abs(stored), scale * 127);
          }
        }
      }
    }
  }
}

TEST_P(AttentionTest, Q8RowsOfZerosAndOfWhatIsNotFinite) {
  const size_t dim = 19;
  Store store({1, dim, KvType::kQ8}, 1);
  Array row(1, dim);
  for (float tiny : {0.0f, -0.0f, 1e-31f, 1e-45f}) {
    std::fill_n(row.data(), dim, tiny);
    StoreRows(row, row, 3, store.view);
    for (size_t i = 0; i < dim; ++i) ASSERT_EQ(store.Value(3, 0, i % 2 == 0, i), 0);
  }
  for (float wrong : {INFINITY, -INFINITY, std::nanf("")}) {
    for (size_t at : {size_t{0}, dim / 2, dim - 1}) {
      std::fill_n(row.data(), dim, 1.0f);
      row.data()[at] = wrong;
      StoreRows(row, row, 3, store.view);
      for (size_t i = 0; i < dim; ++i) ASSERT_FALSE(std::isfinite(store.Value(3, 0, true, i)));
    }
  }
}

}  // namespace
}  // namespace inlay
