// What the tests of the C API share: the demo model and a conversation with it.
#ifndef INLAY_TESTS_GEMMA_LIKE_INLAY_C_FIXTURE_H_
#define INLAY_TESTS_GEMMA_LIKE_INLAY_C_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gemma_like/inlay_c.h"
#include "tests/gemma_like/model_fixture.h"

namespace inlay {

#define EXPECT_ERROR(call, status, words)                         \
  do {                                                            \
    EXPECT_EQ(call, status);                                      \
    EXPECT_THAT(inlay_last_error(), ::testing::HasSubstr(words)); \
  } while (false)

inline constexpr char kPrompt[] = "To be, or not to be";

inline int Collect(const char* text, size_t size, void* user) {
  static_cast<std::string*>(user)->append(text, size);
  return 0;
}

inline int StopAtOnce(const char*, size_t, void*) { return 1; }

class InlayCTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const inlay_model_options two = {sizeof(two), 2, 0, 0};
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

  inlay_cache* NewCache(inlay_row_type type = INLAY_ROWS_F16, size_t max_length = 200) {
    const inlay_cache_options options = {sizeof(options), max_length, type, 0};
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

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_INLAY_C_FIXTURE_H_
