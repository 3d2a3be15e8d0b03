#include "gemma_like/generation/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "gemma_like/generation/counter_random.h"
#include "tests/must.h"

namespace inlay {
namespace {

using Words = std::array<uint32_t, 4>;

// The known answers that come with the paper's Random123 library.
TEST(CounterRandom, KnownAnswers) {
  EXPECT_EQ(Philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint32_t kOnes = 0xffffffff;
  EXPECT_EQ(Philox({kOnes, kOnes, kOnes, kOnes}, {kOnes, kOnes}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandom, EachArgumentCounts) {
  const double unit = RandomUnit(1, 2, 3);
  EXPECT_GE(unit, 0);
  EXPECT_LT(unit, 1);
  EXPECT_EQ(RandomUnit(1, 2, 3), unit);
  EXPECT_NE(RandomUnit(1, 2, 4), unit);
  EXPECT_NE(RandomUnit(1, 3, 3), unit);
  EXPECT_NE(RandomUnit(2, 2, 3), unit);
  EXPECT_NE(RandomUnit(1 | uint64_t{1} << 32, 2, 3), unit);
  EXPECT_NE(RandomUnit(1, 2 | uint64_t{1} << 32, 3), unit);
}

std::vector<int32_t> History(size_t n) { return std::vector<int32_t>(n, 7); }

TEST(Sampler, ChoicesAreAFunctionOfSeedPositionAndNumber) {
  std::vector<float> logits(50);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = 0.01f * static_cast<float>(i);
  const SamplingOptions options = {.temperature = 1, .top_k = 0, .top_p = 1, .seed = 5};
  Sampler a(options), b(options);
  std::vector<int32_t> forward, backward;
  for (size_t n = 0; n < 40; ++n) forward.push_back(*a.Sample(logits, History(n)));
  for (size_t n = 40; n-- > 0;) backward.insert(backward.begin(), *b.Sample(logits, History(n)));
  EXPECT_EQ(forward, backward) << "what was chosen before must not count";
  EXPECT_GT(std::set<int32_t>(forward.begin(), forward.end()).size(), 15u)
      << "positions draw on their own";
  SamplingOptions second = options;
  second.choice = 1;
  Sampler c(second);
  size_t different = 0;
  for (size_t n = 0; n < 40; ++n) different += *c.Sample(logits, History(n)) != forward[n];
  EXPECT_GT(different, 30u);
}

// Chi-squared with three degrees of freedom: 16.27 is passed once in a thousand seeds, and these
// are always the same.
TEST(Sampler, FrequenciesAreTheProbabilities) {
  const std::vector<float> logits = {0.0f, std::log(2.0f), std::log(3.0f), std::log(4.0f), -30.0f};
  SamplingOptions options{.temperature = 1, .top_k = 4, .top_p = 1, .seed = 11};
  constexpr size_t kDraws = 20'000;
  std::map<int32_t, double> counts;
  const std::vector<int32_t> history = History(3);
  for (; options.choice < kDraws; ++options.choice)
    ++counts[*Sampler(options).Sample(logits, history)];
  double chi = 0;
  for (int32_t token = 0; token < 4; ++token) {
    const double expected = kDraws * (token + 1) / 10.0;
    chi += (counts[token] - expected) * (counts[token] - expected) / expected;
  }
  EXPECT_LT(chi, 16.27);
  EXPECT_EQ(counts.count(4), 0u) << "top-k leaves four";
}

TEST(Sampler, CutsBeforeTheTemperature) {
  // Probabilities 0.64, 0.24, 0.09, 0.03 at temperature 1.
  const std::vector<float> logits = {3.0f, 2.0f, 1.0f, 0.0f};
  const auto drawn = [&](SamplingOptions options) {
    options.temperature = 100;  // all that remain are about as likely
    std::map<int32_t, int> counts;
    for (; options.choice < 300; ++options.choice) ++counts[*Sampler(options).Sample(logits, {})];
    return counts.size();
  };
  EXPECT_EQ(drawn({.top_k = 0, .top_p = 1}), 4u);
  EXPECT_EQ(drawn({.top_k = 3, .top_p = 1}), 3u);
  EXPECT_EQ(drawn({.top_k = 0, .top_p = 0.7f}), 2u);
  EXPECT_EQ(drawn({.top_k = 0, .top_p = 0.5f}), 1u);
  EXPECT_EQ(drawn({.top_k = 0, .top_p = 1, .min_p = 0.1f}), 3u);
  EXPECT_EQ(drawn({.top_k = 0, .top_p = 1, .min_p = 1}), 1u);
}

TEST(Sampler, TemperatureZeroTakesTheLargestAndPenaltiesCount) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.9f, -1.0f};
  Sampler plain({.temperature = 0});
  EXPECT_EQ(*plain.Sample(logits, std::vector<int32_t>{1}), 1);
  Sampler penalized({.temperature = 0, .repeat_penalty = 1.5f, .repeat_last_n = 2});
  EXPECT_EQ(*penalized.Sample(logits, std::vector<int32_t>{1}), 2);
  EXPECT_EQ(*penalized.Sample(logits, std::vector<int32_t>{1, 0, 0}), 1) << "no more recent";
  EXPECT_EQ(*penalized.Sample(logits, std::vector<int32_t>{-1, 99}), 1) << "ids of no logit";
}

TEST(Sampler, ARepeatPenaltyIsNoSmallerThanTheServers) {
  EXPECT_TRUE(CheckSampling({.repeat_penalty = 0.01f}).ok());
  EXPECT_TRUE(CheckSampling({.repeat_penalty = 100}).ok());
  // With the smallest, a logit divided by it would be infinite.
  for (const float bad : {1e-39f, 0.009f, 0.0f, -1.0f, 101.0f, std::nanf("")}) {
    EXPECT_THAT(CheckSampling({.repeat_penalty = bad}).message(),
                testing::HasSubstr("not between 0.01 and 100"))
        << bad;
  }
}

TEST(Sampler, PresenceAndFrequencyCountTheAnswerAlone) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.9f, -1.0f};
  const std::vector<int32_t> history = {1, 2, 2, 1, 2};
  Sampler presence({.temperature = 0, .presence_penalty = 0.2f});
  EXPECT_EQ(*presence.Sample(logits, history), 1) << "no token is the answer's";
  EXPECT_EQ(*presence.Sample(logits, history, 2), 1) << "1 and 2 are penalized alike";
  EXPECT_EQ(*presence.Sample(logits, std::vector<int32_t>{2, 1}, 1), 2);
  Sampler frequency({.temperature = 0, .frequency_penalty = 0.6f});
  EXPECT_EQ(*frequency.Sample(logits, history, 3), 1) << "once, but 2 twice";
  EXPECT_EQ(*frequency.Sample(logits, history, 5), 0) << "1 twice, 2 three times";
  EXPECT_EQ(*frequency.Sample(logits, std::vector<int32_t>{-1, 99}, 9), 1) << "ids of no logit";
}

TEST(Sampler, BiasIsAdded) {
  const std::vector<float> logits = {1.0f, 2.0f, 1.9f, -1.0f};
  EXPECT_EQ(*Sampler({.temperature = 0, .logit_bias = {{3, 3.1f}}}).Sample(logits, {}), 3);
  EXPECT_EQ(*Sampler({.temperature = 0, .logit_bias = {{1, -1}, {2, -0.5f}}}).Sample(logits, {}),
            2);
  EXPECT_EQ(*Sampler({.temperature = 0, .logit_bias = {{-1, 9}, {4, 9}}}).Sample(logits, {}), 1)
      << "ids of no logit";
  const SamplingOptions bad = {.logit_bias = {{3, 2000.0f}}};
  EXPECT_THAT(CheckSampling(bad).message(), testing::HasSubstr("logit bias of token 3 is 2000"));
}

TEST(Sampler, ChancesAreTheModelsOwn) {
  const std::vector<float> logits = {0.0f, std::log(2.0f), std::log(5.0f)};
  const ChosenToken chosen = ChanceOf(logits, 1, 2);
  EXPECT_EQ(chosen.token, 1);
  EXPECT_NEAR(chosen.logprob, std::log(0.25), 1e-6);
  ASSERT_EQ(chosen.top.size(), 2u);
  EXPECT_EQ(chosen.top[0].token, 2);
  EXPECT_NEAR(chosen.top[0].logprob, std::log(0.625), 1e-6);
  EXPECT_EQ(chosen.top[1].token, 1);
  EXPECT_TRUE(ChanceOf(logits, 0, 0).top.empty());
}

// A library may have changed how the calling thread rounds, and have its subnormal numbers count as
// zeros. Tokens and chances are the same, and the thread's settings stay.
TEST(Sampler, TheCallersFloatEnvironmentChangesNothing) {
  struct Result {
    int32_t token;
    ChosenToken chance;
  };
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 3);
  constexpr float kPenalty = 1.3f;
  constexpr int kKinds = 3;
  std::vector<std::vector<float>> all(3000, std::vector<float>(60));
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<float>& logits = all[i];
    for (float& logit : logits) logit = normal(random);
    if (i % kKinds == 0) continue;
    for (float& logit : logits) logit = -1 - std::abs(logit);
    if (i % kKinds == 1) {  // the same, once token 1 is penalized and rounded to nearest
      logits[1] = 1 + std::abs(normal(random));
      logits[0] = logits[1] / kPenalty;
    } else {  // the same, once subnormal numbers are zeros
      logits[1] = std::numeric_limits<float>::denorm_min();
      logits[0] = 0;
    }
  }
  const auto compute = [&] {
    std::vector<Result> results;
    for (size_t i = 0; i < all.size(); ++i) {
      const SamplingOptions options = {.temperature = i % kKinds == 0 ? 0.7f : 0.0f,
                                       .top_k = i % 2 == 0 ? 0 : 20,
                                       .repeat_penalty = i % kKinds == 2 ? 1.0f : kPenalty,
                                       .seed = i};
      const int32_t token = *Sampler(options).Sample(all[i], std::vector<int32_t>{1});
      results.push_back({token, ChanceOf(all[i], token, 3)});
    }
    return results;
  };
  const std::vector<Result> expected = compute();
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  constexpr uint32_t kFlushAndDaz = 0x8040;
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | kFlushAndDaz);
#endif
  const std::vector<Result> found = compute();
  EXPECT_EQ(std::fegetround(), FE_UPWARD);
#if defined(__x86_64__)
  EXPECT_EQ(__builtin_ia32_stmxcsr() & kFlushAndDaz, kFlushAndDaz);
  __builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() & ~kFlushAndDaz);
#endif
  std::fesetround(FE_TONEAREST);
  for (size_t i = 0; i < all.size(); ++i) {
    ASSERT_EQ(found[i].token, expected[i].token) << i;
    ASSERT_EQ(found[i].chance.logprob, expected[i].chance.logprob) << i;
    for (size_t k = 0; k < 3; ++k) {
      ASSERT_EQ(found[i].chance.top[k].token, expected[i].chance.top[k].token) << i;
      ASSERT_EQ(found[i].chance.top[k].logprob, expected[i].chance.top[k].logprob) << i;
    }
  }
}

TEST(Sampler, RefusesLogitsThatAreNotFinite) {
  Sampler sampler({.temperature = 0});
  for (float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    const std::vector<float> logits = {1.0f, bad};
    EXPECT_EQ(sampler.Sample(logits, History(3)).status().code(), absl::StatusCode::kDataLoss);
  }
}

// A choice of tokens is as if the model had no others.
TEST(Sampler, ChoosesAmongAllowedTokensAsIfThereWereNoOthers) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(150);
    for (float& logit : logits) logit = normal(random);
    std::vector<uint64_t> allowed(3);
    for (uint64_t& word : allowed) word = (uint64_t{random()} << 32 | random()) & random();
    std::vector<float> few;
    std::vector<int32_t> ids;
    for (size_t i = 0; i < logits.size(); ++i) {
      if ((allowed[i / 64] >> i % 64 & 1) == 0) continue;
      few.push_back(logits[i]);
      ids.push_back(static_cast<int32_t>(i));
    }
    if (few.empty()) continue;
    SamplingOptions options{.temperature = round % 3 == 0 ? 0.0f : 1.3f,
                            .top_k = round % 5 == 0 ? 0 : 40,
                            .top_p = round % 2 == 0 ? 1.0f : 0.9f,
                            .seed = static_cast<uint64_t>(round)};
    const int32_t token = Must(Sampler(options).Sample(logits, {}, 0, allowed));
    const int32_t alone = Must(Sampler(options).Sample(few, {}));
    EXPECT_EQ(token, ids[static_cast<size_t>(alone)]) << round;
  }
}

}  // namespace
}  // namespace inlay
