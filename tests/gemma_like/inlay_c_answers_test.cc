// The C API: answers, at once and in pieces, their shapes, and sampling by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "tests/gemma_like/inlay_c_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/repetitions.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

TEST_F(InlayCTest, TellsWhyItStopped) {
  const auto reason = [&](inlay_text_callback callback, size_t max_tokens) {
    inlay_options options = options_;
    options.max_tokens = max_tokens;
    inlay_stop_reason reason = INLAY_STOP_END;
    EXPECT_EQ(inlay_generate(cache_, prompt_.data(), prompt_.size(), &options, callback, nullptr,
                             &reason),
              INLAY_OK)
        << inlay_last_error();
    return reason;
  };
  EXPECT_EQ(reason(nullptr, 3), INLAY_STOP_LENGTH);
  EXPECT_EQ(reason(StopAtOnce, 30), INLAY_STOP_CANCELLED);
  EXPECT_LT(inlay_cache_length(cache_), 60u);
  EXPECT_EQ(reason(nullptr, 1000), INLAY_STOP_CONTEXT);
  EXPECT_EQ(inlay_cache_length(cache_), 200u);
}

TEST_F(InlayCTest, StopTextsAndDraftsAsInTheEngine) {
  const std::string all = Answer(cache_);
  ASSERT_GT(all.size(), 12u);
  const std::string stop = all.substr(6, 4);
  const char* const stops[] = {stop.c_str()};
  options_.stop_texts = stops;
  options_.stop_text_count = 1;
  options_.draft = 4;
  inlay_cache* cache = NewCache();
  std::string text;
  inlay_stop_reason reason = INLAY_STOP_END;
  ASSERT_EQ(
      inlay_generate(cache, prompt_.data(), prompt_.size(), &options_, Collect, &text, &reason),
      INLAY_OK);
  EXPECT_EQ(reason, INLAY_STOP_TEXT);
  EXPECT_EQ(text, all.substr(0, all.find(stop)));
  inlay_free_cache(cache);
  options_.stop_texts = nullptr;
  EXPECT_EQ(inlay_generate(cache_, prompt_.data(), 1, &options_, nullptr, nullptr, nullptr),
            INLAY_INVALID_ARGUMENT);
}

TEST_F(InlayCTest, KeepsAnswersToTheirShape) {
  const struct {
    inlay_shape_kind kind;
    const char* shape;
    const char* matches;
  } cases[] = {
      {INLAY_SHAPE_REGEX, "(one|two|three)-[a-f]{4}", "(one|two|three)-[a-f]{4}"},
      {INLAY_SHAPE_GBNF, "root ::= \"<\" [0-9]? \">\" | \"none\"", "<[0-9]?>|none"},
      {INLAY_SHAPE_JSON_SCHEMA, "{\"enum\": [\"red\", true, null]}", "\\s*(\"red\"|true|null)\\s*"},
  };
  options_.max_tokens = 100;
  for (const auto& [kind, shape, matches] : cases) {
    options_.shape_kind = kind;
    options_.shape = shape;
    for (options_.seed = 0; options_.seed < 5; ++options_.seed) {
      inlay_cache* cache = NewCache();
      std::string text;
      inlay_stop_reason reason = INLAY_STOP_CANCELLED;
      ASSERT_EQ(
          inlay_generate(cache, prompt_.data(), prompt_.size(), &options_, Collect, &text, &reason),
          INLAY_OK)
          << inlay_last_error();
      if (reason == INLAY_STOP_END) {
        EXPECT_TRUE(std::regex_match(text, std::regex(matches))) << text;
      } else {  // white space without end
        EXPECT_EQ(kind, INLAY_SHAPE_JSON_SCHEMA) << text;
      }
      inlay_free_cache(cache);
    }
  }
}

TEST_F(InlayCTest, ShapesMayFollowThoughtsAndHaveAnOrder) {
  // Bard ends lines by itself.
  options_.max_tokens = 150;
  options_.shape_kind = INLAY_SHAPE_REGEX;
  options_.shape = "shape [0-9]";
  options_.shape_after = "\n";
  const std::string text = Answer(cache_);
  EXPECT_TRUE(std::regex_match(text, std::regex("[^\n]+\nshape [0-9]"))) << text;
  options_.shape_after = "";
  EXPECT_TRUE(std::regex_match(Answer(cache_), std::regex(options_.shape)));

  // Members come in any order unless theirs is asked for.
  options_.shape_kind = INLAY_SHAPE_JSON_SCHEMA;
  options_.shape =
      "{\"properties\": {\"x\": {\"const\": 1}, \"y\": {\"const\": 2}}, \"required\": [\"x\", "
      "\"y\"], "
      "\"type\": \"object\", \"additionalProperties\": false}";
  const auto second_first = [&](int in_order) {
    options_.shape_in_order = in_order;
    int found = 0;
    for (options_.seed = 0; options_.seed < (kSanitized ? 4 : 12); ++options_.seed) {
      inlay_cache* cache = NewCache();
      const std::string json = Answer(cache);
      found += json.find("\"y\"") < json.find("\"x\"");
      inlay_free_cache(cache);
    }
    return found;
  };
  EXPECT_GT(second_first(0), 0);
  EXPECT_EQ(second_first(1), 0);
}

TEST_F(InlayCTest, ShapesOutliveTheModelsHandle) {
  options_.shape_kind = INLAY_SHAPE_REGEX;
  options_.shape = "[a-z]{3}";
  inlay_cache* other = NewCache();
  const std::string text = Answer(cache_);
  inlay_free_model(model_);
  model_ = nullptr;
  EXPECT_EQ(Answer(other), text);
  options_.shape = "[A-Z]{3}";
  EXPECT_TRUE(std::regex_match(Answer(other), std::regex(options_.shape)));
  inlay_free_cache(other);
}

TEST_F(InlayCTest, RefusesShapesWithASentence) {
  const auto refusal = [&](int kind, const char* shape, inlay_status status) {
    options_.shape_kind = kind;
    options_.shape = shape;
    std::string text;
    EXPECT_EQ(
        inlay_generate(cache_, prompt_.data(), prompt_.size(), &options_, Collect, &text, nullptr),
        status);
    EXPECT_EQ(text, "");
    EXPECT_EQ(inlay_cache_length(cache_), 0u);
    return std::string(inlay_last_error());
  };
  const inlay_status invalid = INLAY_INVALID_ARGUMENT;
  EXPECT_EQ(refusal(9, "a", invalid), "shape_kind is 9, not an inlay_shape_kind");
  EXPECT_EQ(refusal(INLAY_SHAPE_REGEX, nullptr, invalid), "shape is NULL");
  EXPECT_THAT(refusal(INLAY_SHAPE_REGEX, "a(", invalid), HasSubstr("'a('"));
  EXPECT_THAT(refusal(INLAY_SHAPE_GBNF, "root ::= word", invalid), HasSubstr("'word'"));
  EXPECT_THAT(refusal(INLAY_SHAPE_JSON_SCHEMA, "{\"not\": {}}", invalid), HasSubstr("'not'"));
  EXPECT_THAT(refusal(INLAY_SHAPE_JSON_SCHEMA, "{", invalid), HasSubstr("not JSON"));
  EXPECT_THAT(refusal(INLAY_SHAPE_REGEX, "((a{900}){900}){900}", INLAY_RESOURCE_EXHAUSTED),
              HasSubstr("more than 1000000"));
}

TEST_F(InlayCTest, BiasesRuleTokensOutOrIn) {
  options_.temperature = 0;
  const std::string first = Answer(cache_);
  const int32_t token = inlay_cache_tokens(cache_)[prompt_.size()];
  inlay_bias bias = {token, -1000};
  options_.logit_bias = &bias;
  options_.logit_bias_count = 1;
  inlay_cache* cache = NewCache();
  EXPECT_NE(Answer(cache), first);
  const int32_t* tokens = inlay_cache_tokens(cache);
  EXPECT_EQ(std::count(tokens + prompt_.size(), tokens + inlay_cache_length(cache), token), 0);
  inlay_free_cache(cache);
  bias.bias = 1000;
  cache = NewCache();
  Answer(cache);
  tokens = inlay_cache_tokens(cache);
  EXPECT_EQ(std::count(tokens + prompt_.size(), tokens + inlay_cache_length(cache), token), 20);
  std::vector<float> logits(inlay_vocabulary_size(model_));
  int32_t sampled = -1;
  EXPECT_EQ(inlay_sample(cache, logits.data(), &options_, 0, &sampled), INLAY_OK);
  EXPECT_EQ(sampled, token);
  bias.bias = 1001;
  EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 0, &sampled), INLAY_INVALID_ARGUMENT,
               "is 1001");
  for (const int32_t none : {-1, 1024}) {
    bias = {none, 1};
    EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 0, &sampled), INLAY_INVALID_ARGUMENT,
                 "logit_bias has the token " + std::to_string(none) + ", outside 0 to 1023");
  }
  options_.logit_bias = nullptr;
  EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 0, &sampled), INLAY_INVALID_ARGUMENT,
               "logit_bias is NULL");
  inlay_free_cache(cache);
}

TEST_F(InlayCTest, PiecesTellHowLikelyTheirTokensAre) {
  const size_t vocab = inlay_vocabulary_size(model_);
  for (const bool asked : {true, false}) {
    options_.log_probabilities = asked;
    inlay_cache* cache = NewCache();
    inlay_cache* by_hand = NewCache();
    std::vector<float> logits(vocab);
    ASSERT_EQ(inlay_append(by_hand, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
    inlay_generation* generation = nullptr;
    ASSERT_EQ(inlay_start_generation(cache, prompt_.data(), prompt_.size(), &options_, &generation),
              INLAY_OK)
        << inlay_last_error();
    inlay_piece piece = {};
    piece.size = sizeof(piece);
    size_t tokens = 0;
    while (piece.done == 0) {
      ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK) << inlay_last_error();
      if (!asked) {
        EXPECT_EQ(piece.log_probabilities, nullptr);
      }
      for (size_t i = 0; asked && i < piece.token_count; ++i, ++tokens) {
        double expected = 0;
        ASSERT_EQ(inlay_log_probabilities(model_, logits.data(), &piece.tokens[i], 1, &expected),
                  INLAY_OK);
        EXPECT_NEAR(piece.log_probabilities[i], expected, 1e-5);
        ASSERT_EQ(inlay_append(by_hand, &piece.tokens[i], 1, logits.data()), INLAY_OK);
      }
    }
    EXPECT_EQ(tokens, asked ? 20u : 0u);
    inlay_free_generation(generation);
    for (inlay_cache* one : {cache, by_hand}) inlay_free_cache(one);
  }
}

TEST_F(InlayCTest, AnswersComeInPieces) {
  const std::string expected = Answer(cache_);
  inlay_cache* cache = NewCache();
  inlay_generation* generation = nullptr;
  ASSERT_EQ(inlay_start_generation(cache, prompt_.data(), prompt_.size(), &options_, &generation),
            INLAY_OK)
      << inlay_last_error();
  std::string text;
  std::vector<int32_t> tokens;
  inlay_piece piece = {};
  piece.size = sizeof(piece);
  size_t pieces = 0;
  while (piece.done == 0) {
    ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK) << inlay_last_error();
    text.append(piece.text, piece.text_size);
    tokens.insert(tokens.end(), piece.tokens, piece.tokens + piece.token_count);
    ++pieces;
    // The conversation is the answer's until that has ended.
    const inlay_status status = piece.done != 0 ? INLAY_OK : INLAY_FAILED_PRECONDITION;
    inlay_cache* fork = nullptr;
    EXPECT_EQ(inlay_fork_cache(cache, &fork), status);
    inlay_free_cache(fork);
  }
  EXPECT_EQ(piece.reason, INLAY_STOP_LENGTH);
  EXPECT_EQ(text, expected);
  EXPECT_EQ(tokens.size(), 20u);
  EXPECT_GE(pieces, 20u);
  const int32_t* held = inlay_cache_tokens(cache);
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), held + prompt_.size()));
  EXPECT_EQ(inlay_cache_length(cache), prompt_.size() + tokens.size());
  EXPECT_ERROR(inlay_next_piece(generation, &piece), INLAY_FAILED_PRECONDITION, "has ended");
  EXPECT_EQ(inlay_stop_generation(generation), INLAY_OK);
  // What comes later stays.
  ASSERT_EQ(inlay_append(cache, prompt_.data(), 3, nullptr), INLAY_OK);
  inlay_free_generation(generation);
  EXPECT_EQ(inlay_cache_length(cache), prompt_.size() + tokens.size() + 3);
  inlay_free_generation(nullptr);

  EXPECT_EQ(inlay_start_generation(cache, prompt_.data(), 0, nullptr, &generation),
            INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_append(cache, prompt_.data(), 1, nullptr), INLAY_OK) << "nobody has it";
  inlay_free_cache(cache);
}

TEST_F(InlayCTest, StoppedAnswersLeaveWhatTheyHaveTold) {
  inlay_generation* generation = nullptr;
  const auto start = [&] {
    ASSERT_EQ(
        inlay_start_generation(cache_, prompt_.data(), prompt_.size(), &options_, &generation),
        INLAY_OK);
  };
  start();
  EXPECT_EQ(inlay_append(cache_, prompt_.data(), 1, nullptr), INLAY_FAILED_PRECONDITION);
  ASSERT_EQ(inlay_stop_generation(generation), INLAY_OK);
  EXPECT_EQ(inlay_cache_length(cache_), 0u);
  inlay_free_generation(generation);

  start();
  std::vector<int32_t> all = prompt_;
  inlay_piece piece = {};
  piece.size = sizeof(piece);
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK);
    all.insert(all.end(), piece.tokens, piece.tokens + piece.token_count);
  }
  ASSERT_EQ(inlay_stop_generation(generation), INLAY_OK);
  const int32_t* held = inlay_cache_tokens(cache_);
  EXPECT_EQ(std::vector<int32_t>(held, held + inlay_cache_length(cache_)), all);
  EXPECT_EQ(inlay_next_piece(generation, &piece), INLAY_FAILED_PRECONDITION);
  inlay_free_generation(generation);

  // Ended, and freed after its conversation.
  inlay_cache* cache = NewCache();
  ASSERT_EQ(inlay_start_generation(cache, prompt_.data(), prompt_.size(), &options_, &generation),
            INLAY_OK);
  do {
    ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK);
  } while (piece.done == 0);
  inlay_free_cache(cache);
  inlay_free_generation(generation);

  // Freed before everything that it needs, and after it.
  start();
  ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK);
  inlay_free_generation(generation);
  EXPECT_EQ(inlay_rewind_cache(cache_, all.size()), INLAY_OK) << inlay_last_error();
  start();
  ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK);
  inlay_free_cache(cache_);
  inlay_free_model(model_);
  cache_ = nullptr;
  model_ = nullptr;
  EXPECT_EQ(inlay_next_piece(generation, &piece), INLAY_OK) << inlay_last_error();
  inlay_free_generation(generation);
}

// A piece may have more tokens than one batch takes, where a shape forces them.
TEST_F(InlayCTest, StoppedAnswersHaveAllOfALongPiece) {
  const std::string shape = "root ::= \"" + std::string(3000, 'a') + "\"";
  options_.shape_kind = INLAY_SHAPE_GBNF;
  options_.shape = shape.c_str();
  options_.max_tokens = 4000;
  inlay_cache* cache = NewCache(INLAY_ROWS_F16, 4096);
  inlay_generation* generation = nullptr;
  ASSERT_EQ(inlay_start_generation(cache, prompt_.data(), prompt_.size(), &options_, &generation),
            INLAY_OK);
  inlay_piece piece = {};
  piece.size = sizeof(piece);
  ASSERT_EQ(inlay_next_piece(generation, &piece), INLAY_OK);
  const size_t told = prompt_.size() + piece.token_count;
  EXPECT_GT(told, 1024u);
  ASSERT_EQ(inlay_stop_generation(generation), INLAY_OK);
  EXPECT_EQ(inlay_cache_length(cache), told);
  inlay_free_generation(generation);
  inlay_free_cache(cache);
}

TEST_F(InlayCTest, SamplesAsAnswersDo) {
  options_.temperature = 1.2f;
  options_.top_k = 50;
  options_.repeat_penalty = 1.1f;
  options_.presence_penalty = 0.7f;
  options_.frequency_penalty = 0.3f;
  options_.seed = 5;
  const std::string expected = Answer(cache_);
  const size_t end = inlay_cache_length(cache_);
  std::vector<int32_t> answer(inlay_cache_tokens(cache_) + prompt_.size(),
                              inlay_cache_tokens(cache_) + end);
  inlay_cache* cache = NewCache();
  std::vector<float> logits(inlay_vocabulary_size(model_));
  ASSERT_EQ(inlay_append(cache, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
  std::vector<int32_t> sampled;
  while (sampled.size() < answer.size()) {
    int32_t token = -1;
    ASSERT_EQ(inlay_sample(cache, logits.data(), &options_, sampled.size(), &token), INLAY_OK)
        << inlay_last_error();
    sampled.push_back(token);
    ASSERT_EQ(inlay_append(cache, &token, 1, logits.data()), INLAY_OK);
  }
  EXPECT_EQ(sampled, answer);
  options_.presence_penalty = 0;
  options_.frequency_penalty = 0;
  inlay_cache* other = NewCache();
  EXPECT_NE(Answer(other), expected) << "the penalties count";
  int32_t token = -1;
  EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 1000, &token), INLAY_INVALID_ARGUMENT,
               "longer than the conversation");
  options_.shape_kind = INLAY_SHAPE_REGEX;
  EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 0, &token), INLAY_INVALID_ARGUMENT,
               "cannot be kept to a shape");
  inlay_free_cache(cache);
  inlay_free_cache(other);
}

// The likeliest token is one that the file says is never generated: the next one is chosen.
TEST_F(InlayCTest, SamplesWhereTheFileSuppressesTokens) {
  options_.temperature = 0;
  std::vector<float> logits(inlay_vocabulary_size(model_));
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
  int32_t likeliest = -1;
  ASSERT_EQ(inlay_sample(cache_, logits.data(), &options_, 0, &likeliest), INLAY_OK);
  const std::string path = TempPath("suppresses.gguf");
  WriteChanged(Must(GgufFile::Open(kBardPath)),
               {.add_keys =
                    [&](GgufWriter& writer) {
                      writer.SetInt32s("tokenizer.ggml.suppress_tokens", {likeliest});
                    }},
               path);
  inlay_model* model = nullptr;
  ASSERT_EQ(inlay_load_model(path.c_str(), nullptr, &model), INLAY_OK) << inlay_last_error();
  inlay_cache* cache = nullptr;
  ASSERT_EQ(inlay_create_cache(model, nullptr, &cache), INLAY_OK) << inlay_last_error();
  ASSERT_EQ(inlay_append(cache, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
  int32_t token = -1;
  EXPECT_EQ(inlay_sample(cache, logits.data(), &options_, 0, &token), INLAY_OK)
      << inlay_last_error();
  logits[static_cast<size_t>(likeliest)] = -1e30f;
  EXPECT_EQ(token, std::max_element(logits.begin(), logits.end()) - logits.begin());
  options_.temperature = -1;
  EXPECT_ERROR(inlay_sample(cache, logits.data(), &options_, 0, &token), INLAY_INVALID_ARGUMENT,
               "temperature is -1");
  inlay_free_cache(cache);
  inlay_free_model(model);
}

}  // namespace
}  // namespace inlay
