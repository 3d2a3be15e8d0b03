// The C API.
#include "gemma_like/inlay_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "gemma_like/generation/generate.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

constexpr char kPrompt[] = "To be, or not to be";

int Collect(const char* text, size_t size, void* user) {
  static_cast<std::string*>(user)->append(text, size);
  return 0;
}

int StopAtOnce(const char*, size_t, void*) { return 1; }

class InlayCTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const inlay_model_options two = {sizeof(two), 2, 0};
    ASSERT_EQ(inlay_load_model(kBardPath, &two, &model_), INLAY_OK) << inlay_last_error();
    cache_ = NewCache();
    prompt_ = Tokens(kPrompt);
    options_.size = sizeof(options_);
    ASSERT_EQ(inlay_default_options(model_, &options_), INLAY_OK);
    options_.max_tokens = 20;
  }
  void TearDown() override {
    inlay_free_model(model_);  // its caches keep it
    inlay_free_cache(cache_);
  }

  inlay_cache* NewCache(inlay_row_type type = INLAY_ROWS_F32) {
    const inlay_cache_options options = {sizeof(options), 200, type, 0};
    inlay_cache* cache = nullptr;
    EXPECT_EQ(inlay_create_cache(model_, &options, &cache), INLAY_OK) << inlay_last_error();
    return cache;
  }

  std::vector<int32_t> Tokens(const std::string& text) {
    std::vector<int32_t> tokens(text.size() + 2);
    size_t count = 0;
    EXPECT_EQ(
        inlay_tokenize(model_, text.data(), text.size(), tokens.data(), tokens.size(), &count),
        INLAY_OK);
    tokens.resize(count);
    return tokens;
  }

  std::string Answer(inlay_cache* cache) {
    std::string text;
    EXPECT_EQ(
        inlay_generate(cache, prompt_.data(), prompt_.size(), &options_, Collect, &text, nullptr),
        INLAY_OK)
        << inlay_last_error();
    return text;
  }

  inlay_model* model_ = nullptr;
  inlay_cache* cache_ = nullptr;
  inlay_options options_ = {};
  std::vector<int32_t> prompt_;
};

TEST_F(InlayCTest, SaysWhatTheEngineSays) {
  const LoadedModel model = LoadBard();
  EXPECT_EQ(prompt_, *model.tokenizer->Encode(kPrompt));
  EXPECT_EQ(inlay_vocabulary_size(model_), 1024u);
  auto cache = Must(model.engine->CreateCache({.max_length = 200}));
  GenerateOptions options;
  options.sampling = SamplingOptions::From(model.engine->info().sampling);
  options.max_tokens = 20;
  const auto expected = Generate(*model.engine, *model.tokenizer, *cache, prompt_, options);
  ASSERT_TRUE(expected.ok());
  EXPECT_EQ(Answer(cache_), expected->text);
  EXPECT_EQ(inlay_cache_length(cache_), cache->length());
  std::string text(expected->text.size(), '\0');
  size_t size = 0;
  ASSERT_EQ(
      inlay_detokenize(model_, prompt_.data(), prompt_.size(), text.data(), text.size(), &size),
      INLAY_OK);
  EXPECT_EQ(text.substr(0, size), kPrompt);
}

TEST_F(InlayCTest, ForksRewindsSavesAndLoads) {
  inlay_cache* fork = nullptr;
  ASSERT_EQ(inlay_fork_cache(cache_, &fork), INLAY_OK);
  const std::string answer = Answer(cache_);
  EXPECT_EQ(inlay_cache_length(fork), 0u);
  EXPECT_EQ(Answer(fork), answer);

  const size_t length = inlay_cache_length(cache_);
  const std::string path = TempPath("conversation");
  ASSERT_EQ(inlay_save_cache(cache_, path.c_str()), INLAY_OK);
  const std::string second = Answer(cache_);
  size_t recomputed = 1;
  ASSERT_EQ(inlay_load_cache(fork, path.c_str(), 1, &recomputed), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(recomputed, 0u);
  EXPECT_EQ(inlay_cache_length(fork), length);
  EXPECT_EQ(Answer(fork), second);
  std::remove(path.c_str());

  EXPECT_EQ(inlay_rewind_cache(fork, inlay_cache_length(fork) - 5), INLAY_OK);
  EXPECT_EQ(inlay_cache_length(fork), inlay_cache_length(cache_) - 5);
  EXPECT_EQ(inlay_rewind_cache(fork, 1000), INLAY_OUT_OF_RANGE);
  // What the header promises: 32 from the greatest length, however often one rewinds.
  const size_t greatest = inlay_cache_length(cache_);
  EXPECT_EQ(inlay_rewind_cache(fork, greatest - 20), INLAY_OK);
  EXPECT_EQ(inlay_rewind_cache(fork, greatest - 32), INLAY_OK);

  // Of the first release: computed again, or refused.
  const char* old = "tests/gemma_like/sessions/testdata/session_version_2.bin";
  EXPECT_EQ(inlay_load_cache(fork, old, 1, &recomputed), INLAY_FAILED_PRECONDITION);
  EXPECT_THAT(inlay_last_error(), HasSubstr("it has version 2 of the format"));
  EXPECT_EQ(recomputed, 0u);
  ASSERT_EQ(inlay_load_cache(fork, old, 0, &recomputed), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(recomputed, 15u);
  EXPECT_EQ(inlay_cache_length(fork), 15u);
  inlay_free_cache(fork);
}

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
    for (options_.seed = 0; options_.seed < 12; ++options_.seed) {
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

// The grammars of a model stay as long as its last conversation.
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

// A caller who was compiled with fewer fields.
TEST_F(InlayCTest, OlderStructsHaveTheDefaultsOfWhatTheyLack) {
  const std::string expected = Answer(cache_);
  struct {
    inlay_options options;
    char behind[8];
  } older = {options_, "intact"};
  older.options.size = offsetof(inlay_options, stop_texts);
  older.options.stop_text_count = 99;
  older.options.draft = 99;
  older.options.shape_kind = 99;
  inlay_cache* cache = NewCache();
  std::string text;
  EXPECT_EQ(inlay_generate(cache, prompt_.data(), prompt_.size(), &older.options, Collect, &text,
                           nullptr),
            INLAY_OK)
      << inlay_last_error();
  EXPECT_EQ(text, expected);
  inlay_free_cache(cache);
  older.options.top_k = 0;
  EXPECT_EQ(inlay_default_options(model_, &older.options), INLAY_OK);
  EXPECT_EQ(older.options.top_k, options_.top_k);
  EXPECT_EQ(older.options.draft, 99u) << "beyond the size";
  EXPECT_GE(inlay_interface_version(), 3);
  EXPECT_THAT(inlay_version(), HasSubstr("."));
}

TEST_F(InlayCTest, LogitsAndBatches) {
  const size_t vocab = inlay_vocabulary_size(model_);
  const LoadedModel model = LoadBard();
  auto expected_cache = Must(model.engine->CreateCache({.max_length = 200}));
  const std::vector<float> expected = Append(*model.engine, *expected_cache, prompt_);
  const float* last = &expected[(prompt_.size() - 1) * vocab];

  std::vector<float> logits(3 * vocab);
  ASSERT_EQ(inlay_append(cache_, prompt_.data(), prompt_.size(), logits.data()), INLAY_OK);
  EXPECT_TRUE(std::equal(last, last + vocab, logits.begin()));

  // Two conversations of different lengths and row types, and one that is too long.
  inlay_cache* whole = NewCache();
  inlay_cache* q8 = NewCache(INLAY_ROWS_Q8);
  const inlay_cache_options options = {sizeof(options), 2, INLAY_ROWS_F32, 0};
  inlay_cache* small = nullptr;
  ASSERT_EQ(inlay_create_cache(model_, &options, &small), INLAY_OK);
  EXPECT_EQ(inlay_cache_max_length(small), 2u);
  inlay_step steps[] = {
      {sizeof(inlay_step), q8, prompt_.data(), 3, 1, INLAY_ERROR},
      {sizeof(inlay_step), small, prompt_.data(), 3, 0, INLAY_ERROR},
      {sizeof(inlay_step), whole, prompt_.data(), prompt_.size(), 2, INLAY_ERROR},
  };
  EXPECT_EQ(inlay_forward(steps, 3, logits.data(), 3 * vocab - 1), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_cache_length(whole), 0u);
  ASSERT_EQ(inlay_forward(steps, 3, logits.data(), logits.size()), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(steps[0].status, INLAY_OK);
  EXPECT_EQ(steps[1].status, INLAY_OUT_OF_RANGE);
  EXPECT_EQ(steps[2].status, INLAY_OK);
  EXPECT_EQ(inlay_cache_length(small), 0u);
  EXPECT_EQ(inlay_cache_length(q8), 3u);
  EXPECT_TRUE(
      std::equal(last - vocab, last + vocab, logits.begin() + static_cast<ptrdiff_t>(vocab)));

  EXPECT_EQ(inlay_cache_rewind_floor(whole), 0u) << "full attention goes back anywhere";
  EXPECT_GE(inlay_rewind_depth(whole), 32u);
  inlay_step sizeless = {0, whole, prompt_.data(), 1, 0, INLAY_OK};
  EXPECT_EQ(inlay_forward(&sizeless, 1, nullptr, 0), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_forward(nullptr, 1, nullptr, 0), INLAY_INVALID_ARGUMENT);
  for (inlay_cache* cache : {whole, q8, small}) inlay_free_cache(cache);
}

TEST_F(InlayCTest, LimitsOfMemory) {
  inlay_cache_options options = {sizeof(options), 200, INLAY_ROWS_F32, 1000};
  inlay_cache* cache = nullptr;
  EXPECT_EQ(inlay_create_cache(model_, &options, &cache), INLAY_RESOURCE_EXHAUSTED);
  EXPECT_THAT(inlay_last_error(), HasSubstr("more than the limit of 1000"));
  options.row_type = 17;
  EXPECT_EQ(inlay_create_cache(model_, &options, &cache), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(cache, nullptr);
}

TEST_F(InlayCTest, ErrorsAreCodesAndSentences) {
  inlay_model* none = nullptr;
  EXPECT_EQ(inlay_load_model("no/such/file", nullptr, &none), INLAY_NOT_FOUND);
  EXPECT_THAT(inlay_last_error(), HasSubstr("no/such/file"));
  EXPECT_EQ(inlay_load_model("LICENSE", nullptr, &none), INLAY_INVALID_ARGUMENT);
  const inlay_model_options negative = {sizeof(negative), -1, 0};
  EXPECT_EQ(inlay_load_model(kBardPath, &negative, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("threads is -1"));
  const inlay_model_options sizeless = {0, 1, 0};
  EXPECT_EQ(inlay_load_model(kBardPath, &sizeless, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("the size of inlay_model_options is 0"));
  EXPECT_EQ(inlay_load_model(nullptr, nullptr, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_STREQ(inlay_last_error(), "path is NULL");
  EXPECT_EQ(none, nullptr);

  size_t count = 0;
  int32_t two[2] = {-1, -1};
  EXPECT_EQ(inlay_tokenize(model_, kPrompt, std::strlen(kPrompt), two, 2, &count),
            INLAY_OUT_OF_RANGE);
  EXPECT_EQ(count, prompt_.size());
  EXPECT_EQ(two[1], prompt_[1]);
  EXPECT_EQ(inlay_tokenize(model_, kPrompt, std::strlen(kPrompt), nullptr, 0, &count),
            INLAY_OUT_OF_RANGE);

  char text[16] = "untouched";
  for (const int32_t id : {-1, 1024, INT32_MAX}) {
    const int32_t ids[2] = {prompt_[0], id};
    EXPECT_EQ(inlay_detokenize(model_, ids, 2, text, sizeof(text), &count), INLAY_INVALID_ARGUMENT);
    EXPECT_EQ(inlay_last_error(),
              "token 1 is " + std::to_string(id) + ", outside the vocabulary of 1024");
    EXPECT_STREQ(text, "untouched");
  }

  const int32_t outside = 5000;
  EXPECT_EQ(inlay_generate(cache_, &outside, 1, nullptr, nullptr, nullptr, nullptr),
            INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_generate(cache_, &outside, 0, nullptr, nullptr, nullptr, nullptr),
            INLAY_INVALID_ARGUMENT);
  options_.top_p = 7;
  EXPECT_EQ(
      inlay_generate(cache_, prompt_.data(), prompt_.size(), &options_, nullptr, nullptr, nullptr),
      INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("7"));
  EXPECT_EQ(inlay_load_cache(cache_, "LICENSE", 0, nullptr), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_load_cache(cache_, "no/such/file", 0, nullptr), INLAY_NOT_FOUND);
  EXPECT_EQ(inlay_cache_length(cache_), 0u);

  // Another thread has its own.
  std::thread([] { EXPECT_STREQ(inlay_last_error(), ""); }).join();
  inlay_free_model(nullptr);
  inlay_free_cache(nullptr);
}

}  // namespace
}  // namespace inlay
