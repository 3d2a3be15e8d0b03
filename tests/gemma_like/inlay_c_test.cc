// The C API.
#include "gemma_like/inlay_c.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gemma_like/generate.h"
#include "tests/gemma_like/model_fixture.h"

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
    ASSERT_EQ(inlay_load_model(kBardPath, 2, &model_), INLAY_OK) << inlay_last_error();
    ASSERT_EQ(inlay_create_cache(model_, 200, &cache_), INLAY_OK);
    prompt_ = Tokens(kPrompt);
    inlay_default_options(model_, &options_);
    options_.max_tokens = 20;
  }
  void TearDown() override {
    inlay_free_model(model_);  // its caches keep it
    inlay_free_cache(cache_);
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
  auto cache = model.engine->CreateCache({.max_length = 200});
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
  const std::string path = ::testing::TempDir() + "inlay_c_test_" + std::to_string(getpid());
  ASSERT_EQ(inlay_save_cache(cache_, path.c_str()), INLAY_OK);
  const std::string second = Answer(cache_);
  ASSERT_EQ(inlay_load_cache(fork, path.c_str()), INLAY_OK) << inlay_last_error();
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

TEST_F(InlayCTest, ErrorsAreCodesAndSentences) {
  inlay_model* none = nullptr;
  EXPECT_EQ(inlay_load_model("no/such/file", 1, &none), INLAY_NOT_FOUND);
  EXPECT_THAT(inlay_last_error(), HasSubstr("no/such/file"));
  EXPECT_EQ(inlay_load_model("LICENSE", 1, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_load_model(kBardPath, 0, &none), INLAY_INVALID_ARGUMENT);
  EXPECT_THAT(inlay_last_error(), HasSubstr("threads is 0"));
  EXPECT_EQ(inlay_load_model(nullptr, 1, &none), INLAY_INVALID_ARGUMENT);
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
  EXPECT_EQ(inlay_load_cache(cache_, "LICENSE"), INLAY_INVALID_ARGUMENT);
  EXPECT_EQ(inlay_load_cache(cache_, "no/such/file"), INLAY_NOT_FOUND);
  EXPECT_EQ(inlay_cache_length(cache_), 0u);

  // Another thread has its own.
  std::thread([] { EXPECT_STREQ(inlay_last_error(), ""); }).join();
  inlay_free_model(nullptr);
  inlay_free_cache(nullptr);
}

}  // namespace
}  // namespace inlay
