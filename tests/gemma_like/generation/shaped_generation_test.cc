// Answers of a given shape: they have it, and however their steps are cut and mixed they are the
// same.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/grammar_guide.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

// A text between two that must come.
constexpr char kScene[] =
    R"(root ::= "{\"speaker\": \"" [A-Z]{2,8} "\", \"line\": \"" [a-z ]{0,12} "\"}")";

class ShapedGenerationTest : public ::testing::Test {
 protected:
  void SetUp() override {
    model_ = LoadBard();
    grammars_ = std::make_unique<AnswerGrammars>(*model_.tokenizer);
    prompt_ = *model_.tokenizer->Encode("To be, or not to be: that is the question.\n");
    options_.max_tokens = 120;
    options_.sampling.seed = 4;
    options_.sampling.temperature = 1.5f;
    options_.grammar = Must(grammars_->Get(Gbnf(kScene)));
  }

  static AnswerShape Gbnf(const std::string& text) {
    return {.kind = AnswerShape::Kind::kGbnf, .source = text};
  }

  std::unique_ptr<KVCache> NewCache(size_t length = 256) {
    return Must(model_.engine->CreateCache({.max_length = length}));
  }

  std::unique_ptr<Generation> Begin(KVCache& cache) {
    return Must(Generation::Begin(*model_.tokenizer, cache, prompt_, options_));
  }

  // Runs all to their ends in common batches of at most `most` tokens each; returns the steps.
  size_t Run(const std::vector<std::pair<Generation*, KVCache*>>& all, size_t most) {
    const size_t vocab_size = model_.engine->info().vocab_size;
    size_t count = 0;
    while (true) {
      std::vector<SequenceStep> steps;
      std::vector<Generation*> running;
      size_t rows = 0;
      for (const auto& [generation, cache] : all) {
        if (generation->done()) continue;
        const Generation::Step step = Must(generation->Next(most));
        EXPECT_LE(step.tokens.size(), most);
        EXPECT_LE(step.logit_rows, generation->most_logit_rows());
        steps.push_back({.cache = cache, .tokens = step.tokens, .logit_rows = step.logit_rows});
        running.push_back(generation);
        rows += step.logit_rows;
      }
      if (steps.empty()) return count;
      ++count;
      std::vector<float> memory(rows * vocab_size + 1);
      const FloatRows logits(memory.data(), rows, vocab_size);
      EXPECT_TRUE(model_.engine->Forward(steps, logits).ok());
      size_t row = 0;
      for (size_t i = 0; i < steps.size(); ++i) {
        EXPECT_TRUE(running[i]->Accept(logits.Slice(row, steps[i].logit_rows)).ok());
        row += steps[i].logit_rows;
      }
    }
  }

  bool HasShape(const std::string& text, const AnswerShape& shape) {
    GrammarMatcher matcher(
        Must(CompiledGrammar::Create(Must(CompileShape(shape, *model_.tokenizer)))));
    return Must(matcher.AcceptBytes(text)) && Must(matcher.CanEnd());
  }

  Tokens Conversation(const Tokens& answer) const {
    Tokens all = prompt_;
    all.insert(all.end(), answer.begin(), answer.end());
    return all;
  }

  LoadedModel model_;
  std::unique_ptr<AnswerGrammars> grammars_;
  Tokens prompt_;
  GenerateOptions options_;
};

TEST_F(ShapedGenerationTest, AnswersHaveTheShapeHoweverTheyAreCut) {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    options_.sampling.seed = seed;
    options_.draft = 0;
    options_.top_chances = std::nullopt;
    auto whole_cache = NewCache();
    const GenerateResult whole =
        Must(Generate(*model_.engine, *model_.tokenizer, *whole_cache, prompt_, options_));
    EXPECT_TRUE(HasShape(whole.text, Gbnf(kScene))) << whole.text;
    EXPECT_EQ(whole.stop_reason, StopReason::kEndOfGeneration);
    EXPECT_GT(whole.forced_tokens, 2u);
    EXPECT_EQ(Tokens(whole_cache->tokens().begin(), whole_cache->tokens().end()),
              Conversation(whole.tokens));
    for (const size_t most : {1, 2, 5, 512}) {
      options_.draft = most == 5 ? 8 : 0;
      options_.top_chances = most == 2 ? std::optional<size_t>(3) : std::nullopt;
      auto cache = NewCache();
      auto generation = Begin(*cache);
      Run({{generation.get(), cache.get()}}, most);
      EXPECT_EQ(generation->tokens(), whole.tokens) << most;
      EXPECT_EQ(generation->text(), whole.text);
      EXPECT_EQ(generation->forced(), whole.forced_tokens);
      EXPECT_EQ(generation->chosen().size(), most == 2 ? whole.tokens.size() : 0u);
      generation.reset();
      EXPECT_EQ(cache->tokens(), whole_cache->tokens());
    }
  }
}

TEST_F(ShapedGenerationTest, TextThatMustComeTakesOnePass) {
  auto cache = NewCache();
  auto generation = Begin(*cache);
  const size_t steps = Run({{generation.get(), cache.get()}}, 512);
  ASSERT_GT(generation->forced(), 2u);
  // A step for the prompt, one for each token that was chosen, and one for each of the three texts,
  // the first of which follows no choice.
  EXPECT_LE(steps, 1 + generation->tokens().size() - generation->forced() + 3);
}

TEST_F(ShapedGenerationTest, OthersWithTheSameGrammarOrNoneChangeNothing) {
  std::vector<Tokens> alone;
  const std::shared_ptr<const AnswerGrammar> shaped = options_.grammar;
  const auto of = [&](uint64_t i) {
    options_.sampling.seed = i;
    options_.grammar = i % 3 == 2 ? nullptr : shaped;
  };
  for (uint64_t i = 0; i < 6; ++i) {
    of(i);
    auto cache = NewCache();
    alone.push_back(
        Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_)).tokens);
  }
  std::vector<std::unique_ptr<KVCache>> caches;
  std::vector<std::unique_ptr<Generation>> generations;
  std::vector<std::pair<Generation*, KVCache*>> all;
  for (uint64_t i = 0; i < 6; ++i) {
    of(i);
    caches.push_back(NewCache());
    generations.push_back(Begin(*caches.back()));
    all.emplace_back(generations.back().get(), caches.back().get());
  }
  Run(all, 7);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(generations[i]->tokens(), alone[i]) << i;
}

TEST_F(ShapedGenerationTest, LimitsAndStopTextsEndItWithinForcedText) {
  auto whole_cache = NewCache();
  const GenerateResult whole =
      Must(Generate(*model_.engine, *model_.tokenizer, *whole_cache, prompt_, options_));
  for (size_t most = 0; most < whole.tokens.size(); ++most) {
    options_.max_tokens = most;
    auto cache = NewCache();
    const GenerateResult part =
        Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
    EXPECT_EQ(part.tokens, Tokens(whole.tokens.begin(), whole.tokens.begin() + most));
    EXPECT_EQ(part.stop_reason, StopReason::kMaxTokens);
    EXPECT_EQ(cache->length(), prompt_.size() + most);
  }
  options_.max_tokens = 120;
  for (size_t room = 1; room < whole.tokens.size(); ++room) {
    auto cache = NewCache(prompt_.size() + room);
    const GenerateResult part =
        Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
    EXPECT_EQ(part.tokens, Tokens(whole.tokens.begin(), whole.tokens.begin() + room));
    EXPECT_EQ(part.stop_reason, StopReason::kContextFull);
  }
  options_.stop_texts = {"ine\": "};
  auto cache = NewCache();
  const GenerateResult stopped =
      Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
  EXPECT_EQ(stopped.stop_reason, StopReason::kStopText);
  EXPECT_EQ(stopped.text, whole.text.substr(0, whole.text.find("ine\": ")));
  EXPECT_EQ(Tokens(cache->tokens().begin(), cache->tokens().end()), Conversation(stopped.tokens));
}

TEST_F(ShapedGenerationTest, CancelledWithinForcedTextKeepsWhatWasGivenOut) {
  auto cache = NewCache();
  auto generation = Begin(*cache);
  const size_t vocab_size = model_.engine->info().vocab_size;
  while (generation->pending() < 2) {
    const Generation::Step step = Must(generation->Next(512));
    std::vector<float> memory(step.logit_rows * vocab_size);
    const FloatRows logits(memory.data(), step.logit_rows, vocab_size);
    const SequenceStep sequence{
        .cache = cache.get(), .tokens = step.tokens, .logit_rows = step.logit_rows};
    ASSERT_TRUE(model_.engine->Forward({&sequence, 1}, logits).ok());
    ASSERT_TRUE(generation->Accept(logits).ok());
  }
  const Tokens given = generation->tokens();
  generation->Cancel();
  Run({{generation.get(), cache.get()}}, 1);
  EXPECT_EQ(generation->stop_reason(), StopReason::kCancelled);
  EXPECT_EQ(generation->tokens(), given);
  EXPECT_EQ(Tokens(cache->tokens().begin(), cache->tokens().end()), Conversation(given));
}

TEST_F(ShapedGenerationTest, TheShapeBeginsAfterTheThoughts) {
  size_t with_thoughts = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    options_.sampling.seed = seed;
    for (const char* after : {"\n", "the", ", "}) {
      AnswerShape shape{.kind = AnswerShape::Kind::kRegex, .source = "[0-9]{3}-[0-9]{2}"};
      shape.after = after;
      options_.grammar = Must(grammars_->Get(shape));
      options_.max_tokens = 200;
      auto cache = NewCache(512);
      const GenerateResult result =
          Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
      const size_t found = result.text.find(after);
      if (result.stop_reason == StopReason::kMaxTokens && found == std::string::npos) continue;
      ASSERT_NE(found, std::string::npos);
      with_thoughts += found > 0 ? 1 : 0;
      absl::string_view answer = absl::string_view(result.text).substr(found + std::strlen(after));
      while (!answer.empty() && std::isspace(answer.front()) != 0) answer.remove_prefix(1);
      shape.after.clear();
      EXPECT_TRUE(HasShape(std::string(answer), shape)) << result.text;
    }
  }
  EXPECT_GT(with_thoughts, 5u);
}

TEST_F(ShapedGenerationTest, OneTokenOfWhiteSpaceMayComeBetweenThoughtsAndShape) {
  AnswerShape shape{.kind = AnswerShape::Kind::kRegex, .source = "[0-9]{3}", .after = "."};
  GrammarGuide guide(*model_.tokenizer, Must(grammars_->Get(shape)));
  const auto token = [&](absl::string_view text) {
    const Tokens tokens = Must(model_.tokenizer->Encode(text, {.add_bos = false}));
    EXPECT_EQ(tokens.size(), 1u) << text;
    return tokens[0];
  };
  const auto allowed = [&](int32_t id) {
    return (Must(guide.Allowed())[static_cast<size_t>(id) / 64] >> id % 64 & 1) != 0;
  };
  EXPECT_TRUE(allowed(token("\n")));  // the thoughts are free
  EXPECT_TRUE(Must(guide.Accept(token("\n"))));
  EXPECT_TRUE(Must(guide.Accept(token("."))));
  EXPECT_TRUE(allowed(token("\n")));
  EXPECT_TRUE(allowed(token("7")));
  EXPECT_FALSE(allowed(token("a")));
  GrammarGuide without = guide;
  EXPECT_TRUE(Must(guide.Accept(token("\n"))));
  EXPECT_FALSE(allowed(token("\n")));
  EXPECT_TRUE(Must(guide.Accept(token("7"))));
  EXPECT_FALSE(allowed(token("\n")));
  EXPECT_TRUE(Must(without.Accept(token("7"))));
  EXPECT_FALSE(Must(without.Accept(token("\n"))));
}

TEST_F(ShapedGenerationTest, IgnoredEndsOfGenerationDoNotEndTheShapeEarly) {
  options_.ignore_eos = true;
  auto cache = NewCache();
  const GenerateResult result =
      Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt_, options_));
  EXPECT_TRUE(HasShape(result.text, Gbnf(kScene))) << result.text;
  EXPECT_EQ(result.stop_reason, StopReason::kEndOfGeneration);
}

TEST_F(ShapedGenerationTest, GrammarsAreCompiledOnce) {
  const AnswerShape shape = Gbnf("root ::= \"a\"");
  const auto first = Must(grammars_->Get(shape));
  EXPECT_EQ(Must(grammars_->Get(shape)), first);
  AnswerShape later = shape;
  later.after = "</think>";
  EXPECT_EQ(Must(grammars_->Get(later))->compiled, first->compiled);
  EXPECT_EQ(Must(grammars_->Get(later))->shape, later);
  for (size_t i = 0; i < AnswerGrammars::kKept; ++i)
    Must(grammars_->Get(Gbnf(absl::StrCat("root ::= \"", i, "\""))));
  EXPECT_NE(Must(grammars_->Get(shape)), first);
  EXPECT_EQ(grammars_->Get(Gbnf("root ::= (")).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace inlay
