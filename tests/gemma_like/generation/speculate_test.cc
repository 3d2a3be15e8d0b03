// Speculation: whatever is drafted, logits, tokens and conversation are those of a run without
// drafts, bit for bit.
#include "gemma_like/generation/speculate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gemma_like/generation/generate.h"
#include "ops/softmax.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/generation/chance_drafter.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/repetitions.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

TEST(PromptLookupTest, RepeatsWhatFollowedTheLongestMatch) {
  PromptLookup lookup;
  EXPECT_EQ(lookup.Draft(Tokens{}, 4), Tokens{});
  EXPECT_EQ(lookup.Draft(Tokens{1}, 4), Tokens{});
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 3, 4}, 4), Tokens{});
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 1}, 4), Tokens{}) << "one token is no match";
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 3, 4, 5, 1, 2}, 3), (Tokens{3, 4, 5}));
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 3, 1, 2}, 5), (Tokens{3, 1, 2, 3, 1}));
  // Three tokens beat the two that stand nearer.
  EXPECT_EQ(lookup.Draft(Tokens{9, 1, 2, 7, 7, 8, 1, 2, 5, 5, 9, 1, 2}, 2), (Tokens{7, 7}));
  // Of equal ones the nearer.
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 7, 0, 1, 2, 5, 0, 1, 2}, 1), (Tokens{5}));
  EXPECT_EQ(lookup.Draft(Tokens{4, 4, 4}, 5), (Tokens{4, 4, 4, 4, 4}));
  EXPECT_EQ(lookup.Draft(Tokens{1, 2, 1, 2}, 0), Tokens{});
}

class SpeculateTest : public FamilyTest {
 protected:
  struct Run {
    Tokens tokens;               // of the whole conversation
    std::vector<uint64_t> bits;  // of the logits after the prompt and after each token generated
  };

  // The prompt, then the likeliest token `count` times.
  Run Greedy(KVCache& cache, absl::Span<const int32_t> prompt, size_t count, Drafter* drafter,
             size_t most) {
    Run run;
    DraftedDecoder decoder(*models_[1], cache, drafter, most);
    EXPECT_TRUE(Prefill(*models_[1], cache, prompt, decoder.logits()).ok());
    decoder.Synchronize();
    for (size_t i = 0; i < count; ++i) {
      const float* logits = decoder.logits().data;
      run.bits.push_back(BitsOf(logits, vocab_));
      EXPECT_TRUE(decoder.Append(static_cast<int32_t>(ArgMax(logits, vocab_))).ok());
      EXPECT_EQ(decoder.tokens().size(), prompt.size() + i + 1);
    }
    drafted_ = decoder.drafted();
    accepted_ = decoder.accepted();
    run.tokens.assign(decoder.tokens().begin(), decoder.tokens().end());
    return run;
  }

  // What comes next has the bits of the straight run too.
  void ExpectSameFuture(KVCache& a, KVCache& b) {
    ASSERT_EQ(a.tokens(), b.tokens());
    std::vector<float> logits(2 * vocab_);
    const Tokens more = {1, 2, 3};
    const SequenceStep steps[] = {{.cache = &a, .tokens = more}, {.cache = &b, .tokens = more}};
    ASSERT_TRUE(models_[0]->Forward(steps, FloatRows(logits.data(), 2, vocab_)).ok());
    EXPECT_EQ(BitsOf(logits.data(), vocab_), BitsOf(logits.data() + vocab_, vocab_));
  }

  size_t drafted_ = 0;
  size_t accepted_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Families, SpeculateTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SpeculateTest, DraftsChangeNothing) {
  for (size_t prompt_length : {1, 63, 620}) {
    const auto prompt = absl::MakeConstSpan(texts_[0]).first(prompt_length);
    auto plain_cache = NewCache();
    const Run plain = Greedy(*plain_cache, prompt, 150, nullptr, 0);
    for (size_t most : {1, 5, 16}) {
      for (double right : {0.0, 0.8, 1.0}) {
        ChanceDrafter drafter(plain.tokens, right, vocab_, Seed() + most);
        auto cache = NewCache();
        const Run drafted = Greedy(*cache, prompt, 150, &drafter, most);
        ASSERT_EQ(drafted.tokens, plain.tokens);
        ASSERT_EQ(drafted.bits, plain.bits) << "prompt " << prompt_length << " most " << most;
        if (right > 0) {
          EXPECT_GT(accepted_, 0u) << "most " << most << " right " << right;
        }
        if (right == 1.0) {
          // All tokens drafted before the end were right; of the 150, most were drafted unless only
          // every other step drafts one.
          EXPECT_GE(accepted_ + DraftedTokens::kMost, drafted_);
          EXPECT_GT(accepted_, most == 1 ? 30u : 80u) << "most " << most;
        }
        auto straight = Must(plain_cache->Fork());
        ASSERT_NO_FATAL_FAILURE(ExpectSameFuture(*cache, *straight));
      }
    }
  }
}

TEST_P(SpeculateTest, PromptLookupFindsRepetition) {
  // Eight times the same thirty tokens: sooner or later the model or the prompt repeats itself.
  Tokens prompt;
  for (int i = 0; i < 8; ++i) {
    prompt.insert(prompt.end(), texts_[0].begin(), texts_[0].begin() + 30);
  }
  auto plain_cache = NewCache();
  const Run plain = Greedy(*plain_cache, prompt, 400, nullptr, 0);
  EXPECT_EQ(drafted_, 0u);
  PromptLookup lookup;
  auto cache = NewCache();
  const Run drafted = Greedy(*cache, prompt, 400, &lookup, 8);
  EXPECT_EQ(drafted.tokens, plain.tokens);
  EXPECT_EQ(drafted.bits, plain.bits);
  EXPECT_GT(accepted_, 0u);
  ASSERT_NO_FATAL_FAILURE(ExpectSameFuture(*cache, *plain_cache));
}

// Drafted tokens never count for the limit, and what is left at the end is what was appended.
TEST_P(SpeculateTest, UpToTheLastToken) {
  auto small = [&] { return NewCache(nullptr, 100); };
  const auto prompt = absl::MakeConstSpan(texts_[0]).first(60);
  auto plain_cache = small();
  const Run plain = Greedy(*plain_cache, prompt, 40, nullptr, 0);
  ChanceDrafter drafter(plain.tokens, 0.8, vocab_, 1);
  auto cache = small();
  const Run drafted = Greedy(*cache, prompt, 40, &drafter, 16);
  EXPECT_EQ(drafted.bits, plain.bits);
  EXPECT_EQ(cache->length(), 100u);
  DraftedDecoder full(*models_[0], *cache, &drafter, 16);
  EXPECT_EQ(full.Append(1).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(cache->length(), 100u);
}

// Where the pool has room for the token but not for the drafted ones, it is appended without them.
TEST_P(SpeculateTest, DraftsGiveWayToALimit) {
  constexpr size_t kLimit = size_t{16} << 20;
  size_t alone = 0;
  for (size_t start : {60, 63, 64, 95}) {
    auto pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = kLimit});
    Conversation c{NewCache(pool), 0};
    ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&c}, {start}));
    size_t needed = 0;
    {
      // What the next token alone takes.
      auto probe = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = kLimit});
      Conversation same{NewCache(probe), 0};
      ASSERT_NO_FATAL_FAILURE(AppendAndCompare(*models_[0], {&same}, {start}));
      const size_t before = probe->used_bytes();
      const auto open = same.cache->Begin(absl::MakeConstSpan(texts_[0]).subspan(start, 1));
      ASSERT_TRUE(open.ok());
      needed = probe->used_bytes() - before;
    }
    const BlockRef rest = pool->Allocate(kLimit - pool->used_bytes() - needed);
    ASSERT_TRUE(rest);
    ChanceDrafter drafter(texts_[0], 1, vocab_, start);
    DraftedDecoder decoder(*models_[0], *c.cache, &drafter, 16);
    ASSERT_TRUE(decoder.Append(texts_[0][start]).ok()) << start;
    EXPECT_EQ(BitsOf(decoder.logits().data, vocab_), expected_[0][start]);
    alone += decoder.drafted() == 0;
  }
  EXPECT_GT(alone, 0u) << "nowhere was there too little room for drafted tokens";
}

// A pass that fails in the middle leaves what was there, and the next one goes on from it.
TEST_P(SpeculateTest, AfterAFailedPass) {
  auto cache = NewCache();
  const auto prompt = absl::MakeConstSpan(texts_[0]).first(70);
  Tokens truth(texts_[0].begin(), texts_[0].begin() + 100);
  ChanceDrafter drafter(truth, 0.5, vocab_, 1);
  {
    DraftedDecoder decoder(*models_[0], *cache, &drafter, 8);
    ASSERT_TRUE(Prefill(*models_[0], *cache, prompt, decoder.logits()).ok());
    decoder.Synchronize();
    for (size_t i = 70; i < 90; ++i) {
      EXPECT_FALSE(decoder.Append(-1).ok());
      EXPECT_EQ(decoder.tokens().size(), i);
      ASSERT_TRUE(decoder.Append(texts_[0][i]).ok());
      ASSERT_EQ(BitsOf(decoder.logits().data, vocab_), expected_[0][i]);
    }
  }
  Conversation c{std::move(cache), 0};
  ASSERT_EQ(c.cache->length(), 90u);
  AppendAndCompare(*models_[0], {&c}, {50});
}

// The demo model, with its tokenizer: every way of sampling and of stopping.
TEST(SpeculateGenerateTest, SameAnswers) {
  const LoadedModel model = LoadBard();
  const std::string text = "To be, or not to be, that is the question: To be, or not to be, that";
  const Tokens prompt = *model.tokenizer->Encode(text);
  const auto generate = [&](GenerateOptions options, size_t draft, size_t max_length = 1000) {
    auto cache = Must(model.engine->CreateCache({.max_length = max_length}));
    options.draft = draft;
    std::string streamed;
    auto result =
        Generate(*model.engine, *model.tokenizer, *cache, prompt, options,
                 [&](absl::string_view piece) { streamed.append(piece.data(), piece.size()); });
    EXPECT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(streamed, result->text);
    EXPECT_EQ(cache->length(), prompt.size() + result->tokens.size());
    return *std::move(result);
  };
  size_t accepted = 0;
  for (float temperature : {0.0f, 0.2f, 0.8f}) {
    for (uint64_t seed : {1, 2}) {
      for (float penalty : {1.0f, 1.2f}) {
        GenerateOptions options;
        options.sampling.temperature = temperature;
        options.sampling.seed = seed;
        options.sampling.repeat_penalty = penalty;
        options.max_tokens = kSanitized ? 40 : 120;
        options.ignore_eos = seed == 1;
        if (seed == 2) options.stop_texts = {"the"};
        const GenerateResult plain = generate(options, 0);
        EXPECT_EQ(plain.drafted_tokens, 0u);
        for (size_t draft : {3, 16}) {
          const GenerateResult drafted = generate(options, draft);
          EXPECT_EQ(drafted.tokens, plain.tokens);
          EXPECT_EQ(drafted.text, plain.text);
          EXPECT_EQ(drafted.stop_reason, plain.stop_reason);
          EXPECT_LE(drafted.accepted_tokens, drafted.drafted_tokens);
          accepted += drafted.accepted_tokens;
        }
      }
    }
  }
  EXPECT_GT(accepted, 0u);

  GenerateOptions options;
  options.sampling.temperature = 0;
  options.ignore_eos = true;
  const GenerateResult full = generate(options, 8, prompt.size() + 33);
  EXPECT_EQ(full.stop_reason, StopReason::kContextFull);
  EXPECT_EQ(full.tokens, generate(options, 0, prompt.size() + 33).tokens);

  options.draft = DraftedTokens::kMost + 1;
  auto cache = Must(model.engine->CreateCache({}));
  EXPECT_EQ(Generate(*model.engine, *model.tokenizer, *cache, prompt, options).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache->length(), 0u);
}

}  // namespace
}  // namespace inlay
