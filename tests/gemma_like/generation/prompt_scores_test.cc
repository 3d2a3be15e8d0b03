// The probabilities of a prompt's tokens: those that the same tokens have when they are generated,
// bit for bit, whatever the steps, the threads and what is reused.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <random>
#include <vector>

#include "cache/block_pool.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/prefix_cache.h"
#include "io/tokenizer/load_tokenizer.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;
using Chosen = std::vector<ChosenToken>;

class PromptScoresTest : public FamilyTest {
 protected:
  static constexpr size_t kGiven = 150, kGenerated = 60, kTop = 3;

  // Tokens of a text, and an answer to them.
  void SetUp() override {
    FamilyTest::SetUp();
    tokenizer_ = Must(LoadTokenizer(*file_));
    tokens_.assign(texts_[0].begin(), texts_[0].begin() + kGiven);
    GenerateOptions options;
    options.max_tokens = kGenerated;
    options.sampling.temperature = 1;
    options.sampling.top_k = 0;
    options.top_chances = kTop;
    options.ignore_eos = true;
    auto cache = NewCache();
    const GenerateResult answer =
        Must(Generate(*models_[0], *tokenizer_, *cache, tokens_, options));
    ASSERT_EQ(answer.chosen.size(), kGenerated);
    generated_ = answer.chosen;
    tokens_.insert(tokens_.end(), answer.tokens.begin(), answer.tokens.end());
  }

  static GenerateOptions ScoreFrom(size_t position) {
    GenerateOptions options;
    options.max_tokens = 0;
    options.top_chances = kTop;
    options.score_from = position;
    return options;
  }

  // What a prompt of all tokens tells of them from `position` on.
  Chosen Scores(size_t position) {
    auto cache = NewCache();
    GenerateResult result =
        Must(Generate(*models_[0], *tokenizer_, *cache, tokens_, ScoreFrom(position)));
    EXPECT_TRUE(result.tokens.empty());
    EXPECT_EQ(result.stop_reason, StopReason::kMaxTokens);
    EXPECT_EQ(cache->length(), tokens_.size());
    return std::move(result.chosen);
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  Tokens tokens_;
  Chosen generated_;
};

INSTANTIATE_TEST_SUITE_P(Families, PromptScoresTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(PromptScoresTest, AreThoseOfTheTimeOfGeneration) {
  EXPECT_EQ(Scores(kGiven), generated_);
  const Chosen all = Scores(1);
  ASSERT_EQ(all.size(), tokens_.size() - 1);
  EXPECT_EQ(Chosen(all.end() - kGenerated, all.end()), generated_);
  EXPECT_EQ(Scores(tokens_.size() - 1), Chosen(all.end() - 1, all.end()));
  EXPECT_EQ(Scores(tokens_.size()), Chosen());
}

// The natural logarithm of the softmax, by its definition.
TEST_P(PromptScoresTest, AreLogarithmsOfTheSoftmaxOfTheLogits) {
  const Chosen scores = Scores(1);
  auto cache = NewCache();
  const std::vector<float> logits = Append(*models_[1], *cache, tokens_);
  for (size_t i = 0; i < scores.size(); ++i) {
    const absl::Span<const float> row(&logits[i * vocab_], vocab_);
    long double sum = 0;
    for (const float logit : row) sum += std::exp(static_cast<long double>(logit));
    const auto logprob = [&](int32_t token) {
      return static_cast<double>(row[static_cast<size_t>(token)] - std::log(sum));
    };
    ASSERT_EQ(scores[i].token, tokens_[i + 1]);
    ASSERT_NEAR(scores[i].logprob, logprob(tokens_[i + 1]), 1e-5) << i;
    std::vector<int32_t> likeliest(vocab_);
    for (size_t token = 0; token < vocab_; ++token) likeliest[token] = static_cast<int32_t>(token);
    std::stable_sort(likeliest.begin(), likeliest.end(), [&](int32_t a, int32_t b) {
      return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
    });
    ASSERT_EQ(scores[i].top.size(), kTop);
    for (size_t n = 0; n < kTop; ++n) {
      ASSERT_EQ(scores[i].top[n].token, likeliest[n]) << i;
      ASSERT_NEAR(scores[i].top[n].logprob, logprob(likeliest[n]), 1e-5) << i;
    }
  }
}

// Random steps and numbers of rows, with snapshots that longer and shorter prompts have left, with
// an answer after the prompt or none.
TEST_P(PromptScoresTest, DoNotDependOnStepsAndSnapshots) {
  const Chosen all = Scores(1);
  std::mt19937_64 random(Seed());
  PrefixCache prefixes(size_t{1} << 30);
  const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.poison = true});
  size_t reused = 0;
  for (int round = 0; round < 40; ++round) {
    const size_t length = 2 + random() % (tokens_.size() - 1);
    const size_t from = 1 + random() % length;
    const absl::Span<const int32_t> prompt = absl::MakeConstSpan(tokens_).first(length);
    GenerateOptions options = ScoreFrom(from);
    options.scored_rows = 1 + random() % kMostScoredRows;
    options.max_tokens = random() % 3;
    options.sampling.temperature = 0;
    options.ignore_eos = true;
    options.draft = random() % 4;
    Engine& engine = *models_[random() % models_.size()];
    auto cache = NewCache(pool);
    const auto generation = Must(Generation::Begin(
        *tokenizer_, *cache, prompt, options,
        {.prefixes = &prefixes, .stride = random() % 2 * 32, .owner = round % 2}));
    EXPECT_EQ(generation->most_logit_rows(), std::max(options.scored_rows, 1 + options.draft));
    while (!generation->done()) {
      const Generation::Step step = Must(generation->Next(1 + random() % 64));
      ASSERT_LE(step.logit_rows, generation->most_logit_rows());
      std::vector<float> memory(step.logit_rows * vocab_ + 1);
      const FloatRows logits(memory.data(), step.logit_rows, vocab_);
      const SequenceStep sequence{
          .cache = cache.get(), .tokens = step.tokens, .logit_rows = step.logit_rows};
      ASSERT_TRUE(engine.Forward({&sequence, 1}, logits).ok());
      ASSERT_TRUE(generation->Accept(logits).ok());
    }
    ASSERT_LT(generation->reused(), from) << "the row after the token before it is needed";
    reused += generation->reused();
    const Chosen& chosen = generation->chosen();
    ASSERT_EQ(chosen.size(), length - from + generation->tokens().size());
    for (size_t i = from; i < length; ++i) ASSERT_EQ(chosen[i - from], all[i - 1]) << i;
    for (size_t i = 0; i < generation->tokens().size(); ++i)
      EXPECT_EQ(chosen[length - from + i].token, generation->tokens()[i]);
  }
  EXPECT_GT(reused, 0u);
}

TEST_P(PromptScoresTest, RefusesWhatCannotBeScored) {
  auto cache = NewCache();
  const auto code = [&](const GenerateOptions& options) {
    return Generation::Begin(*tokenizer_, *cache, tokens_, options).status().code();
  };
  EXPECT_EQ(code(ScoreFrom(0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(ScoreFrom(tokens_.size())), absl::StatusCode::kOk);
  EXPECT_EQ(code(ScoreFrom(tokens_.size() + 1)), absl::StatusCode::kInvalidArgument);
  GenerateOptions options = ScoreFrom(1);
  options.top_chances = std::nullopt;
  EXPECT_EQ(code(options), absl::StatusCode::kInvalidArgument);
  for (const size_t rows : {size_t{0}, kMostScoredRows + 1}) {
    options = ScoreFrom(1);
    options.scored_rows = rows;
    EXPECT_EQ(code(options), absl::StatusCode::kInvalidArgument) << rows;
  }
}

// Of a prompt that is damaged in the middle nothing is left; a token without logits has no
// probability, and the step with it is refused by the engine.
TEST_P(PromptScoresTest, DamagedLogitsAndUnknownTokens) {
  auto cache = NewCache();
  const Tokens before = {1, 2, 3};
  Append(*models_[0], *cache, before);
  Tokens prompt = tokens_;
  prompt[1] = static_cast<int32_t>(vocab_);
  auto generation = Must(Generation::Begin(*tokenizer_, *cache, prompt, ScoreFrom(1)));
  const auto run = [&](float logit) {
    const Generation::Step step = Must(generation->Next(1));
    std::vector<float> logits = Append(*models_[0], *cache, step.tokens);
    logits[0] += logit;
    return generation->Accept(ConstFloatRows(logits.data(), step.logit_rows, vocab_));
  };
  ASSERT_TRUE(run(0).ok());
  EXPECT_EQ(generation->chosen()[0].logprob, -std::numeric_limits<float>::infinity());
  generation.reset();
  generation = Must(Generation::Begin(*tokenizer_, *cache, tokens_, ScoreFrom(1)));
  ASSERT_TRUE(run(0).ok());
  const absl::Status damaged = run(std::numeric_limits<float>::quiet_NaN());
  EXPECT_EQ(damaged.code(), absl::StatusCode::kDataLoss) << damaged;
  EXPECT_NE(damaged.message().find("position 4"), damaged.message().npos) << damaged;
  EXPECT_TRUE(generation->done());
  generation.reset();
  EXPECT_EQ(Tokens(cache->tokens().begin(), cache->tokens().end()), before);
}

}  // namespace
}  // namespace inlay
