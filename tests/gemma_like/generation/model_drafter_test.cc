// Drafts by a second model: whatever it drafts, the answer is the model's own.
#include "gemma_like/generation/model_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cache/block_pool.h"
#include "gemma_like/files/quantization.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/registry.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

class ModelDrafterTest : public ::testing::Test {
 protected:
  static constexpr size_t kContext = 700;

  ModelDrafterTest() : model_(LoadBard()) {
    prompt_ = *model_.tokenizer->Encode("ROMEO:\nBut soft, what light through yonder window");
    options_.max_tokens = 120;
    options_.ignore_eos = true;
    options_.draft = 8;
    options_.sampling.seed = 7;
  }

  // Bard itself with coarser weights, which agrees with it often, not always.
  LoadedModel LoadCoarse() {
    const std::string path = folder_.Path("coarse.gguf");
    EXPECT_TRUE(Requantize(*model_.file, *Quantization::Parse("Q4_0"), path).ok());
    return Must(LoadModel(path, {.threads = 1}));
  }

  std::shared_ptr<ModelDrafter> Drafter(const LoadedModel& draft_model,
                                        const CacheOptions& cache = {.max_length = kContext},
                                        DraftCosts costs = {.pass = 0.1, .row = 0.1}) {
    return Must(ModelDrafter::Create(*draft_model.engine, model_.engine->info().vocab_size, costs,
                                     cache, KvType::kF32, DraftCostsAre::kFixed));
  }

  std::unique_ptr<KVCache> NewCache() {
    return Must(model_.engine->CreateCache({.max_length = kContext}));
  }

  GenerateResult Answer(KVCache& cache, absl::Span<const int32_t> prompt,
                        std::shared_ptr<inlay::Drafter> drafter) {
    GenerateOptions options = options_;
    if (drafter == nullptr) options.draft = 0;
    options.drafter = std::move(drafter);
    return Must(Generate(*model_.engine, *model_.tokenizer, cache, prompt, options));
  }

  // The answer with drafts is the answer without, and so is the conversation.
  GenerateResult ExpectSame(std::shared_ptr<inlay::Drafter> drafter) {
    auto plain_cache = NewCache(), cache = NewCache();
    const GenerateResult plain = Answer(*plain_cache, prompt_, nullptr);
    const GenerateResult drafted = Answer(*cache, prompt_, std::move(drafter));
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_EQ(drafted.text, plain.text);
    EXPECT_EQ(cache->tokens(), plain_cache->tokens());
    EXPECT_EQ(Append(*model_.engine, *cache, {{5, 6}}),
              Append(*model_.engine, *plain_cache, {{5, 6}}));
    return drafted;
  }

  TempFolder folder_;
  LoadedModel model_;
  Tokens prompt_;
  GenerateOptions options_;
};

// The same model draws the same tokens with the same random numbers, penalties and bias included.
TEST_F(ModelDrafterTest, AllDraftsOfTheModelItselfAreRight) {
  const LoadedModel same = LoadBard();
  for (const float temperature : {0.0f, 0.8f, 1.5f}) {
    options_.sampling.temperature = temperature;
    options_.sampling.presence_penalty = temperature;
    options_.sampling.repeat_penalty = 1.2f;
    options_.sampling.logit_bias = {{40, 1.0f}};
    const GenerateResult result = ExpectSame(Drafter(same));
    EXPECT_GT(result.accepted_tokens, 40u);
    // But for those after the end of the answer.
    EXPECT_LE(result.drafted_tokens - result.accepted_tokens, options_.draft) << temperature;
  }
}

TEST_F(ModelDrafterTest, DraftsOfAnotherChangeNothing) {
  const LoadedModel coarse = LoadCoarse();
  for (const float temperature : {0.0f, 0.8f}) {
    for (const size_t draft : {2, 5, 16}) {
      options_.sampling.temperature = temperature;
      options_.draft = draft;
      const GenerateResult result = ExpectSame(Drafter(coarse));
      EXPECT_GT(result.accepted_tokens, 10u) << temperature << " " << draft;
      EXPECT_LT(result.accepted_tokens, result.drafted_tokens) << temperature << " " << draft;
    }
  }
}

// One drafter for several conversations, one after the other: continued, gone back in, another one,
// and the first again.
TEST_F(ModelDrafterTest, FollowsWhateverConversation) {
  const LoadedModel same = LoadBard();
  const auto drafter = Drafter(same);
  auto plain_cache = NewCache(), cache = NewCache();
  const Tokens more = *model_.tokenizer->Encode("\nJULIET:\nAy me");
  const auto both = [&](absl::Span<const int32_t> prompt) {
    const GenerateResult plain = Answer(*plain_cache, prompt, nullptr);
    const GenerateResult drafted = Answer(*cache, prompt, drafter);
    EXPECT_EQ(drafted.tokens, plain.tokens);
    EXPECT_LE(drafted.drafted_tokens - drafted.accepted_tokens, options_.draft);
    EXPECT_GT(drafted.accepted_tokens, 0u);
  };
  both(prompt_);
  both(more);
  for (KVCache* each : {plain_cache.get(), cache.get()})
    ASSERT_TRUE(each->Rewind(each->length() - 10).ok());
  both(more);
  for (auto* each : {&plain_cache, &cache}) *each = NewCache();
  both(more);
  for (auto* each : {&plain_cache, &cache}) *each = NewCache();
  both(prompt_);
}

// A prompt longer than a slice: first the draft model reads it, between the answer's tokens.
TEST_F(ModelDrafterTest, LongPromptsAreReadInSlices) {
  const LoadedModel same = LoadBard();
  Tokens text;
  while (text.size() < 550) text.insert(text.end(), prompt_.begin(), prompt_.end());
  text.resize(550);
  prompt_ = text;
  options_.max_tokens = 60;
  const GenerateResult result = ExpectSame(Drafter(same));
  EXPECT_GT(result.accepted_tokens, 20u);
  EXPECT_LE(result.drafted_tokens - result.accepted_tokens, options_.draft);
}

// What is measured decides how much is drafted, which changes no answer either.
TEST_F(ModelDrafterTest, MeasuredCostsChangeNoAnswer) {
  const LoadedModel coarse = LoadCoarse();
  options_.max_tokens = 300;
  ExpectSame(Must(ModelDrafter::Create(*coarse.engine, model_.engine->info().vocab_size,
                                       {.pass = 0.1, .row = 0.1}, {.max_length = kContext})));
}

TEST_F(ModelDrafterTest, ThePolicyRestsWhereDraftsCostMoreThanTheySave) {
  const LoadedModel same = LoadBard();
  options_.max_tokens = 400;
  const GenerateResult result =
      ExpectSame(Drafter(same, {.max_length = kContext}, {.pass = 5, .row = 0.1}));
  EXPECT_GT(result.drafted_tokens, 0u);
  EXPECT_LT(result.drafted_tokens, 60u);
}

// Where the draft model's conversation has no more room or memory, the answer goes on without.
TEST_F(ModelDrafterTest, AnswersGoOnWhereDraftsEnd) {
  const LoadedModel same = LoadBard();
  const GenerateResult short_one = ExpectSame(Drafter(same, {.max_length = prompt_.size() + 20}));
  EXPECT_GT(short_one.accepted_tokens, 0u);
  EXPECT_LT(short_one.accepted_tokens, 30u);
  const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = 1});
  EXPECT_EQ(ExpectSame(Drafter(same, {.max_length = kContext, .pool = pool})).drafted_tokens, 0u);
  EXPECT_EQ(pool->used_bytes(), 0u);
}

TEST_F(ModelDrafterTest, APauseGivesItsMemoryUp) {
  const LoadedModel same = LoadBard();
  const auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = 64 << 20});
  const auto drafter = Drafter(same, {.max_length = kContext, .pool = pool});
  const Tokens draft = drafter->Draft(prompt_, 4);
  ASSERT_FALSE(draft.empty());
  EXPECT_GT(pool->used_bytes(), 0u);
  drafter->Pause();
  EXPECT_EQ(pool->used_bytes(), 0u);
  const Tokens again = drafter->Draft(prompt_, 4);
  ASSERT_FALSE(again.empty());
  EXPECT_EQ(again[0], draft[0]);
}

TEST_F(ModelDrafterTest, NoTokenBeyondTheModelsVocabularyIsDrafted) {
  const LoadedModel same = LoadBard();
  const auto drafter =
      Must(ModelDrafter::Create(*same.engine, 50, {.pass = 0.1, .row = 0.1},
                                {.max_length = kContext}, KvType::kF32, DraftCostsAre::kFixed));
  size_t drafted = 0;
  for (size_t end = 1; end < prompt_.size(); ++end) {
    for (const int32_t token : drafter->Draft(absl::MakeConstSpan(prompt_).first(end), 8)) {
      EXPECT_LT(token, 50);
      ++drafted;
    }
  }
  EXPECT_GT(drafted, 0u);
}

TEST_F(ModelDrafterTest, ADraftModelGeneratesTextWithTheSameVocabulary) {
  const auto check = [&](const LoadedModel& draft_model) {
    return CheckDraftModel(*model_.engine, *model_.tokenizer, *draft_model.engine,
                           *draft_model.tokenizer);
  };
  EXPECT_TRUE(check(LoadCoarse()).ok());
  const std::string path = folder_.Path("other.gguf");
  ASSERT_TRUE(
      WriteSynth(Must(FindConfig("test-gemma3"))->synth(), {.type = WeightType::kF16}, 1, path)
          .ok());
  const absl::Status other = check(Must(LoadModel(path)));
  EXPECT_EQ(other.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(other.message().find("the draft model has"), absl::string_view::npos) << other;
  ASSERT_TRUE(WriteSynth(Must(FindConfig("test-gemma-embedding"))->synth(),
                         {.type = WeightType::kF16}, 1, path)
                  .ok());
  const absl::Status embeds = check(Must(LoadModel(path)));
  EXPECT_EQ(embeds.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(embeds.message().find("embeds texts"), absl::string_view::npos) << embeds;
}

TEST_F(ModelDrafterTest, CostsAreThoseOfTheBytesRead) {
  const LoadedModel coarse = LoadCoarse();
  EXPECT_NEAR(CostsOfDrafts(*model_.engine, *model_.engine).pass, 1, 1e-9);
  const double cost = CostsOfDrafts(*model_.engine, *coarse.engine).pass;
  EXPECT_GT(cost, 0.25);
  EXPECT_LT(cost, 0.6) << "4.5 bits instead of 16, with norms and the like";
}

}  // namespace
}  // namespace inlay
