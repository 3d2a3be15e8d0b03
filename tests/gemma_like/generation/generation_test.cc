// Answers in steps: however these are cut, mixed and given up, answers and conversations are those
// of one call.
#include "gemma_like/generation/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/block_pool.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/speculate.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

class GenerationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadBard();
    prompt_ = *model_.tokenizer->Encode("To be, or not to be: that is the question. To be, or");
    options_.max_tokens = 40;
    options_.sampling.seed = 4;
  }

  std::unique_ptr<KVCache> NewCache() {
    return Must(model_.engine->CreateCache({.max_length = 256, .pool = pool_}));
  }

  std::unique_ptr<Generation> Begin(KVCache& cache) {
    auto generation = Generation::Begin(*model_.tokenizer, cache, prompt_, options_);
    EXPECT_TRUE(generation.ok()) << generation.status();
    return std::move(*generation);
  }

  // Runs the next steps of some generations in one batch, each of at most `most` tokens.
  void Step(const std::vector<std::pair<Generation*, KVCache*>>& batch, size_t most) {
    const size_t vocab_size = model_.engine->info().vocab_size;
    std::vector<SequenceStep> steps;
    size_t rows = 0;
    for (const auto& [generation, cache] : batch) {
      const auto step = generation->Next(most);
      ASSERT_TRUE(step.ok()) << step.status();
      ASSERT_LE(step->tokens.size(), most);
      ASSERT_LE(step->logit_rows, generation->most_logit_rows());
      steps.push_back({.cache = cache, .tokens = step->tokens, .logit_rows = step->logit_rows});
      rows += step->logit_rows;
    }
    rows_ = rows;
    std::vector<float> memory(rows * vocab_size + 1);
    const FloatRows logits(memory.data(), rows, vocab_size);
    ASSERT_TRUE(model_.engine->Forward(steps, logits).ok());
    size_t row = 0;
    for (size_t i = 0; i < batch.size(); ++i) {
      ASSERT_TRUE(batch[i].first->Accept(logits.Slice(row, steps[i].logit_rows)).ok());
      row += steps[i].logit_rows;
    }
  }

  LoadedModel model_;
  // Of all conversations, as those that share a PrefixCache have to.
  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>();
  Tokens prompt_;
  GenerateOptions options_;
  size_t rows_ = 0;  // of logits in the step that ran last
};

TEST_F(GenerationTest, AnyCutGivesTheSameAnswer) {
  auto whole_cache = NewCache();
  const auto whole = Generate(*model_.engine, *model_.tokenizer, *whole_cache, prompt_, options_);
  ASSERT_TRUE(whole.ok()) << whole.status();
  ASSERT_EQ(whole->tokens.size(), options_.max_tokens);
  for (size_t draft : {0, 8}) {
    options_.draft = draft;
    for (size_t most : {1, 2, 5, 512}) {
      auto cache = NewCache();
      const auto generation = Begin(*cache);
      std::string text;
      for (int steps = 0; !generation->done(); ++steps) {
        ASSERT_LT(steps, 200);
        ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, most));
        absl::StrAppend(&text, generation->TakeText());
      }
      EXPECT_EQ(generation->tokens(), whole->tokens) << most << " draft " << draft;
      EXPECT_EQ(text, whole->text);
      EXPECT_EQ(generation->text(), whole->text);
      EXPECT_EQ(generation->stop_reason(), StopReason::kMaxTokens);
      EXPECT_EQ(cache->tokens(), whole_cache->tokens());
    }
  }
}

// Not greedily, not sampled, and not where a request wants them.
TEST_F(GenerationTest, WhatTheFileSuppressesIsNotGenerated) {
  options_.ignore_eos = true;
  const auto answer = [&] {
    auto cache = NewCache();
    return Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_)).tokens;
  };
  for (const float temperature : {0.0f, 1.0f}) {
    model_ = LoadBard();
    options_.sampling.temperature = temperature;
    const Tokens before = answer();
    const Tokens suppressed = {before[0], before[1]};
    options_.sampling.logit_bias = {{before[0], 100.0f}};
    const std::string path = TempPath("suppressing.gguf");
    WriteChanged(*model_.file,
                 {.add_keys =
                      [&](GgufWriter& metadata) {
                        metadata.SetInt32s("tokenizer.ggml.suppress_tokens", suppressed);
                      }},
                 path);
    model_ = Must(LoadModel(path));
    for (const int32_t token : answer())
      EXPECT_EQ(std::count(suppressed.begin(), suppressed.end(), token), 0) << temperature;
    options_.sampling.logit_bias = {};
  }
}

TEST_F(GenerationTest, OthersInTheBatchChangeNothing) {
  std::vector<Tokens> alone;
  for (uint64_t seed : {1, 2, 3}) {
    options_.sampling.seed = seed;
    auto cache = NewCache();
    alone.push_back(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_)->tokens);
  }
  std::vector<std::unique_ptr<KVCache>> caches;
  std::vector<std::unique_ptr<Generation>> generations;
  for (uint64_t seed : {1, 2, 3}) {
    options_.sampling.seed = seed;
    options_.draft = seed;
    caches.push_back(NewCache());
    generations.push_back(Begin(*caches.back()));
  }
  // One begins after the other: prompts in slices beside answers.
  for (size_t round = 0; round < 200; ++round) {
    std::vector<std::pair<Generation*, KVCache*>> batch;
    for (size_t i = 0; i < generations.size(); ++i) {
      if (round >= 5 * i && !generations[i]->done()) {
        batch.emplace_back(generations[i].get(), caches[i].get());
      }
    }
    if (batch.empty()) break;
    ASSERT_NO_FATAL_FAILURE(Step(batch, 3));
  }
  for (size_t i = 0; i < generations.size(); ++i) {
    EXPECT_TRUE(generations[i]->done());
    EXPECT_EQ(generations[i]->tokens(), alone[i]) << i;
  }
}

TEST_F(GenerationTest, BeginningsComeFromThePrefixCache) {
  auto plain_cache = NewCache();
  const auto plain = Generate(*model_.engine, *model_.tokenizer, *plain_cache, prompt_, options_);
  ASSERT_TRUE(plain.ok()) << plain.status();
  PrefixCache prefixes(size_t{1} << 30);
  for (size_t reused : {size_t{0}, prompt_.size() - 1}) {
    auto cache = NewCache();
    auto generation =
        Generation::Begin(*model_.tokenizer, *cache, prompt_, options_, {&prefixes, 4});
    ASSERT_TRUE(generation.ok()) << generation.status();
    for (bool first = true; !(*generation)->done(); first = false) {
      ASSERT_NO_FATAL_FAILURE(Step({{generation->get(), cache.get()}}, 512));
      if (first) {
        EXPECT_LE(cache->length(), reused == 0 ? 4 : prompt_.size()) << "a stride";
      }
    }
    EXPECT_EQ((*generation)->reused(), reused);
    EXPECT_EQ((*generation)->tokens(), plain->tokens);
    EXPECT_EQ(prefixes.snapshots(), (prompt_.size() + 3) / 4 - 1)
        << "the one of the whole prompt can be rewound to the last before it";
  }
}

// Others that conversations are offered to may have more room than the prefix cache.
TEST_F(GenerationTest, SnapshotsAreOfferedWhetherOrNotTheyFit) {
  std::vector<size_t> fitting;
  for (const size_t budget : {size_t{1} << 30, size_t{1}}) {
    PrefixCache prefixes(budget);
    std::vector<size_t> offered;
    auto cache = NewCache();
    const auto generation = Must(Generation::Begin(
        *model_.tokenizer, *cache, prompt_, options_,
        {.prefixes = &prefixes, .stride = 4, .at_snapshot = [&](const KVCache& offer) {
           offered.push_back(offer.length());
         }}));
    while (!generation->done()) {
      ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, 512));
    }
    EXPECT_EQ(prefixes.snapshots() > 0, budget > 1);
    EXPECT_EQ(offered.size(), (prompt_.size() + 3) / 4);
    EXPECT_EQ(offered.back(), prompt_.size());
    if (fitting.empty()) fitting = offered;
    EXPECT_EQ(offered, fitting);
  }
}

TEST_F(GenerationTest, GivenUpInThePromptLeavesTheConversation) {
  auto cache = NewCache();
  const Tokens before = {5, 6, 7};
  ASSERT_TRUE(Prefill(*model_.engine, *cache, before,
                      FloatRows(nullptr, 0, model_.engine->info().vocab_size))
                  .ok());
  // More than can be rewound.
  const size_t step = 2 * cache->rewind_depth();
  const Tokens once = prompt_;
  while (prompt_.size() <= step) prompt_.insert(prompt_.end(), once.begin(), once.end());
  for (bool cancel : {false, true}) {
    auto generation = Begin(*cache);
    ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, step));
    EXPECT_EQ(cache->length(), before.size() + step);
    EXPECT_TRUE(generation->in_prompt());
    if (cancel) {
      generation->Cancel();
      EXPECT_TRUE(generation->done());
      EXPECT_EQ(generation->stop_reason(), StopReason::kCancelled);
    }
    generation.reset();
    EXPECT_EQ(Tokens(cache->tokens().begin(), cache->tokens().end()), before);
  }
}

TEST_F(GenerationTest, CancelledLaterKeepsWhatWasGivenOut) {
  for (size_t draft : {0, 6}) {
    options_.draft = draft;
    auto cache = NewCache();
    auto generation = Begin(*cache);
    while (generation->tokens().size() < 9) {
      ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, 16));
    }
    generation->Cancel();
    const Tokens given = generation->tokens();
    while (!generation->done()) {
      ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, 16));
    }
    EXPECT_EQ(generation->stop_reason(), StopReason::kCancelled);
    EXPECT_EQ(generation->tokens(), given);
    Tokens all = prompt_;
    all.insert(all.end(), given.begin(), given.end());
    generation.reset();
    EXPECT_EQ(Tokens(cache->tokens().begin(), cache->tokens().end()), all);
  }
}

TEST_F(GenerationTest, TheLastStepAsksForNoLogits) {
  auto cache = NewCache();
  options_.max_tokens = 1;
  auto generation = Begin(*cache);
  EXPECT_EQ(generation->Next(512)->logit_rows, 1u);
  ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, 512));
  EXPECT_EQ(generation->Next(512)->logit_rows, 0u);
  ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), cache.get()}}, 512));
  EXPECT_TRUE(generation->done());
  EXPECT_EQ(cache->length(), prompt_.size() + 1);

  options_.max_tokens = 0;
  auto other_cache = NewCache();
  auto none = Begin(*other_cache);
  EXPECT_EQ(none->Next(512)->logit_rows, 0u);
  ASSERT_NO_FATAL_FAILURE(Step({{none.get(), other_cache.get()}}, 512));
  EXPECT_TRUE(none->done());
  EXPECT_EQ(other_cache->length(), prompt_.size());
}

TEST_F(GenerationTest, StopTextsAndFullContextsEndIt) {
  auto cache = NewCache();
  const std::string text =
      Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_)->text;
  ASSERT_GT(text.size(), 20u);
  options_.stop_texts = {text.substr(8, 6)};
  for (size_t draft : {0, 8}) {
    options_.draft = draft;
    auto stopped_cache = NewCache();
    auto generation = Begin(*stopped_cache);
    while (!generation->done()) {
      ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), stopped_cache.get()}}, 16));
    }
    EXPECT_EQ(generation->stop_reason(), StopReason::kStopText);
    // Where it was drafted, its logits are there all the same.
    if (draft == 0) {
      EXPECT_EQ(rows_, 0u);
    }
    EXPECT_EQ(generation->text(), text.substr(0, text.find(options_.stop_texts[0])));
    Tokens all = prompt_;
    all.insert(all.end(), generation->tokens().begin(), generation->tokens().end());
    generation.reset();
    EXPECT_EQ(Tokens(stopped_cache->tokens().begin(), stopped_cache->tokens().end()), all);
  }
  options_.stop_texts = {};
  auto small = Must(model_.engine->CreateCache({.max_length = prompt_.size() + 5}));
  auto generation = Begin(*small);
  while (!generation->done()) {
    ASSERT_NO_FATAL_FAILURE(Step({{generation.get(), small.get()}}, 16));
  }
  EXPECT_EQ(generation->stop_reason(), StopReason::kContextFull);
  EXPECT_EQ(small->length(), small->max_length());
}

TEST_F(GenerationTest, TheTokenThatEndsTheAnswerHasAProbability) {
  const int32_t end = model_.tokenizer->ends().front();
  options_.sampling.logit_bias = {{end, 1000.0f}};
  options_.top_chances = 2;
  for (const bool told : {false, true}) {
    options_.end_chance = told;
    auto cache = NewCache();
    const GenerateResult answer =
        Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
    EXPECT_EQ(answer.stop_reason, StopReason::kEndOfGeneration);
    EXPECT_TRUE(answer.tokens.empty());
    ASSERT_EQ(answer.chosen.size(), told ? 1u : 0u);
    if (!told) continue;
    EXPECT_EQ(answer.chosen[0].token, end);
    EXPECT_EQ(answer.chosen[0].top.size(), 2u);
    EXPECT_LT(answer.chosen[0].logprob, -0.1f) << "without the bias";
  }
}

TEST_F(GenerationTest, RefusesWhatCannotBegin) {
  auto cache = NewCache();
  const auto code = [&](const Tokens& prompt) {
    return Generation::Begin(*model_.tokenizer, *cache, prompt, options_).status().code();
  };
  EXPECT_EQ(code({}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Tokens(257, 1)), absl::StatusCode::kOutOfRange);
  options_.draft = DraftedTokens::kMost + 1;
  EXPECT_EQ(code(prompt_), absl::StatusCode::kInvalidArgument);
  options_.draft = 0;
  options_.sampling.temperature = -1;
  EXPECT_EQ(code(prompt_), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace inlay
