// The C API: callbacks that throw or end their thread.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <vector>

#include "tests/gemma_like/inlay_c_fixture.h"

namespace inlay {
namespace {

// Throws the first, second or third thing at the third text.
struct Thrower {
  int what = 0;
  int called = 0;

  void Throw() const {
    if (what == 0) throw std::runtime_error("the caller's own words");
    if (what == 1) throw 42;
    throw std::bad_alloc();
  }
};

int ThrowAtThird(const char*, size_t, void* user) {
  Thrower& thrower = *static_cast<Thrower*>(user);
  if (++thrower.called == 3) thrower.Throw();
  return 0;
}

int ThrowWhenAsked(void* user) {
  static_cast<Thrower*>(user)->Throw();
  return 0;
}

class InlayCCallbacksTest : public InlayCTest {
 protected:
  // A prompt that no machine computes before the first question of a poll.
  std::vector<int32_t> LongPrompt() const {
    std::vector<int32_t> tokens;
    while (tokens.size() < 200'000) tokens.insert(tokens.end(), prompt_.begin(), prompt_.end());
    return tokens;
  }
};

constexpr struct {
  inlay_status status;
  const char* sentence;
} kThrown[] = {{INLAY_ERROR, "the caller's own words"},
               {INLAY_ERROR, "a callback threw what is no std::exception"},
               {INLAY_RESOURCE_EXHAUSTED, "there is not enough memory"}};

TEST_F(InlayCCallbacksTest, WhatTheyThrowEndsTheCall) {
  for (int what = 0; what < 3; ++what) {
    inlay_cache* cache = NewCache();
    Thrower thrower = {what};
    EXPECT_ERROR(inlay_generate(cache, prompt_.data(), prompt_.size(), &options_, ThrowAtThird,
                                &thrower, nullptr),
                 kThrown[what].status, kThrown[what].sentence);
    // The prompt and the answer so far.
    EXPECT_GT(inlay_cache_length(cache), prompt_.size());
    EXPECT_EQ(inlay_append(cache, prompt_.data(), 1, nullptr), INLAY_OK) << inlay_last_error();
    inlay_free_cache(cache);
  }
}

TEST_F(InlayCCallbacksTest, WhatAPolledOneThrowsEndsTheCallAndTheAnswer) {
  const std::vector<int32_t> prompt = LongPrompt();
  inlay_cache* cache = NewCache(INLAY_ROWS_F16, 1 << 20);
  for (int what = 0; what < 3; ++what) {
    Thrower thrower = {what};
    const auto expect_thrown = [&](inlay_status status) {
      EXPECT_EQ(status, kThrown[what].status);
      EXPECT_THAT(inlay_last_error(), ::testing::HasSubstr(kThrown[what].sentence));
    };
    inlay_set_poll(ThrowWhenAsked, &thrower);
    expect_thrown(inlay_append(cache, prompt.data(), prompt.size(), nullptr));
    inlay_generation* generation = nullptr;
    ASSERT_EQ(inlay_start_generation(cache, prompt.data(), prompt.size(), &options_, &generation),
              INLAY_OK);
    inlay_piece piece = {};
    piece.size = sizeof(piece);
    expect_thrown(inlay_next_piece(generation, &piece));
    inlay_set_poll(nullptr, nullptr);
    EXPECT_ERROR(inlay_next_piece(generation, &piece), INLAY_FAILED_PRECONDITION, "has ended");
    EXPECT_EQ(inlay_cache_length(cache), 0u);
    EXPECT_EQ(inlay_append(cache, prompt_.data(), 1, nullptr), INLAY_OK) << "nobody has it";
    EXPECT_EQ(inlay_rewind_cache(cache, 0), INLAY_OK);
    inlay_free_generation(generation);
  }
  inlay_free_cache(cache);
}

#ifdef __GLIBCXX__

struct Answering {
  inlay_cache* cache;
  std::vector<int32_t> prompt;
};

int EndTheThread(const char*, size_t, void*) { pthread_exit(nullptr); }
int EndThePollingThread(void*) { pthread_exit(nullptr); }

void* RunAnswer(void* user) {
  const Answering& answering = *static_cast<Answering*>(user);
  inlay_generate(answering.cache, answering.prompt.data(), answering.prompt.size(), nullptr,
                 EndTheThread, nullptr, nullptr);
  return user;
}

void* RunAppend(void* user) {
  const Answering& answering = *static_cast<Answering*>(user);
  inlay_set_poll(EndThePollingThread, nullptr);
  inlay_append(answering.cache, answering.prompt.data(), answering.prompt.size(), nullptr);
  return user;
}

TEST_F(InlayCCallbacksTest, TheyMayEndTheThread) {
  Answering answering = {NewCache(INLAY_ROWS_F16, 1 << 20), prompt_};
  for (void* (*run)(void*) : {RunAnswer, RunAppend}) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, run, &answering), 0);
    void* result = &answering;
    ASSERT_EQ(pthread_join(thread, &result), 0);
    EXPECT_EQ(result, nullptr) << "it went on";
    EXPECT_EQ(inlay_append(answering.cache, prompt_.data(), 1, nullptr), INLAY_OK)
        << inlay_last_error();
    answering.prompt = LongPrompt();
  }
  inlay_free_cache(answering.cache);
}

#endif  // __GLIBCXX__

}  // namespace
}  // namespace inlay
