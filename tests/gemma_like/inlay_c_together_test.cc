// The C API: answers that are generated together, a pass for the next steps of all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "tests/gemma_like/inlay_c_fixture.h"

namespace inlay {
namespace {

// An answer in a conversation of its own.
struct One {
  inlay_cache* cache = nullptr;
  inlay_generation* generation = nullptr;
  std::string text;
  std::vector<int32_t> tokens;
  inlay_stop_reason reason = INLAY_STOP_CANCELLED;
  inlay_status status = INLAY_OK;
  size_t steps = 0;
  bool done = false;
};

class InlayCTogetherTest : public InlayCTest {
 protected:
  void TearDown() override {
    for (const One& one : all_) {
      inlay_free_generation(one.generation);
      inlay_free_cache(one.cache);
    }
    InlayCTest::TearDown();
  }

  One& Start(const std::vector<int32_t>& prompt, size_t max_length = 2000) {
    One one;
    one.cache = NewCache(INLAY_ROWS_F16, max_length);
    EXPECT_EQ(
        inlay_start_generation(one.cache, prompt.data(), prompt.size(), &options_, &one.generation),
        INLAY_OK)
        << inlay_last_error();
    return all_.emplace_back(one);
  }

  std::vector<One*> Running() {
    std::vector<One*> running;
    for (One& one : all_) {
      if (!one.done) running.push_back(&one);
    }
    return running;
  }

  // A step of all that run.
  inlay_status Step() {
    const std::vector<One*> running = Running();
    std::vector<inlay_generation*> generations;
    for (const One* one : running) generations.push_back(one->generation);
    std::vector<inlay_piece> pieces(running.size());
    for (inlay_piece& piece : pieces) piece.size = sizeof(piece);
    const inlay_status status =
        inlay_next_pieces(generations.data(), generations.size(), pieces.data());
    for (size_t i = 0; status == INLAY_OK && i < running.size(); ++i) {
      One& one = *running[i];
      one.text.append(pieces[i].text == nullptr ? "" : pieces[i].text, pieces[i].text_size);
      one.tokens.insert(one.tokens.end(), pieces[i].tokens,
                        pieces[i].tokens + pieces[i].token_count);
      one.reason = pieces[i].reason;
      one.status = pieces[i].status;
      one.done = pieces[i].done != 0;
      ++one.steps;
    }
    return status;
  }

  void RunAll() {
    while (!Running().empty()) ASSERT_EQ(Step(), INLAY_OK) << inlay_last_error();
  }

  // What `options_` give alone.
  std::string Alone(const std::vector<int32_t>& prompt, inlay_stop_reason* reason) {
    inlay_cache* cache = NewCache(INLAY_ROWS_F16, 2000);
    std::string text;
    EXPECT_EQ(
        inlay_generate(cache, prompt.data(), prompt.size(), &options_, Collect, &text, reason),
        INLAY_OK)
        << inlay_last_error();
    inlay_free_cache(cache);
    return text;
  }

  std::deque<One> all_;
};

// Prompts of all lengths, of more than one pass too, shapes, stop texts and drafts.
TEST_F(InlayCTogetherTest, AnswersAreThoseOfEachAlone) {
  struct Expected {
    std::string text;
    inlay_stop_reason reason;
  };
  std::vector<Expected> expected;
  const char* const stops[] = {"e"};
  for (uint64_t i = 0; i < 8; ++i) {
    std::vector<int32_t> prompt;
    for (uint64_t j = 0; j <= 30 * i * i; ++j) prompt.push_back(100 + static_cast<int>(j % 500));
    options_.seed = i;
    options_.max_tokens = 10 + 5 * i;
    options_.draft = i % 3 == 1 ? 4 : 0;
    options_.stop_texts = stops;
    options_.stop_text_count = i == 5 ? 1 : 0;
    options_.shape_kind = i == 2 ? INLAY_SHAPE_REGEX : INLAY_SHAPE_NONE;
    options_.shape = "(yes|no), because [a-z ]{5,10}[.]";
    Expected& one = expected.emplace_back();
    one.text = Alone(prompt, &one.reason);
    Start(prompt);
  }
  RunAll();
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(all_[i].status, INLAY_OK);
    EXPECT_EQ(all_[i].text, expected[i].text) << i;
    EXPECT_EQ(all_[i].reason, expected[i].reason) << i;
    // The conversation is the caller's again, with all of the answer.
    const size_t length = inlay_cache_length(all_[i].cache);
    const int32_t* held = inlay_cache_tokens(all_[i].cache);
    ASSERT_GE(length, all_[i].tokens.size());
    EXPECT_TRUE(std::equal(all_[i].tokens.begin(), all_[i].tokens.end(),
                           held + length - all_[i].tokens.size()))
        << i;
    EXPECT_EQ(inlay_append(all_[i].cache, prompt_.data(), 1, nullptr), INLAY_OK);
  }
  EXPECT_EQ(all_[5].reason, INLAY_STOP_TEXT);
}

// A long prompt does not keep the others from their tokens.
TEST_F(InlayCTogetherTest, PromptsAreComputedInPartsBesideAnswers) {
  options_.max_tokens = 5;
  options_.ignore_end = 1;
  Start(prompt_);
  One& slow = Start(std::vector<int32_t>(1800, 100));
  ASSERT_EQ(Step(), INLAY_OK) << inlay_last_error();
  EXPECT_EQ(all_[0].tokens.size(), 1u);
  EXPECT_EQ(slow.tokens.size(), 0u);
  EXPECT_FALSE(slow.done);
  RunAll();
  EXPECT_EQ(slow.tokens.size(), 5u);
  EXPECT_GT(slow.steps, all_[0].steps);
}

TEST_F(InlayCTogetherTest, OneThatFailsOrHasEndedIsAlone) {
  options_.max_tokens = 5;
  options_.ignore_end = 1;
  Start(prompt_);
  One& stopped = Start(prompt_);
  ASSERT_EQ(Step(), INLAY_OK);
  ASSERT_EQ(inlay_stop_generation(stopped.generation), INLAY_OK);
  ASSERT_EQ(Step(), INLAY_OK) << inlay_last_error();
  EXPECT_TRUE(stopped.done);
  EXPECT_EQ(stopped.status, INLAY_FAILED_PRECONDITION);
  EXPECT_STREQ(inlay_last_error(), "answer 1: the answer has ended");
  EXPECT_EQ(inlay_cache_length(stopped.cache), prompt_.size() + 1);
  RunAll();
  EXPECT_EQ(all_[0].status, INLAY_OK);
  EXPECT_EQ(all_[0].tokens.size(), 5u);
}

TEST_F(InlayCTogetherTest, RefusesWhatIsNotToBeRunTogether) {
  inlay_piece pieces[2] = {};
  pieces[0].size = pieces[1].size = sizeof(inlay_piece);
  EXPECT_EQ(inlay_next_pieces(nullptr, 0, nullptr), INLAY_OK);
  One& one = Start(prompt_);
  inlay_generation* both[2] = {one.generation, one.generation};
  EXPECT_ERROR(inlay_next_pieces(both, 2, pieces), INLAY_FAILED_PRECONDITION,
               "answer 1 is given twice, or another call uses it");
  both[1] = nullptr;
  EXPECT_ERROR(inlay_next_pieces(both, 2, pieces), INLAY_INVALID_ARGUMENT, "a generation is NULL");
  inlay_model* other = nullptr;
  ASSERT_EQ(inlay_load_model(kBardPath, nullptr, &other), INLAY_OK);
  std::swap(model_, other);
  both[1] = Start(prompt_).generation;
  std::swap(model_, other);
  inlay_free_model(other);
  EXPECT_ERROR(inlay_next_pieces(both, 2, pieces), INLAY_INVALID_ARGUMENT, "different models");
  pieces[0].size = offsetof(inlay_piece, log_probabilities);
  EXPECT_ERROR(inlay_next_pieces(both, 1, pieces), INLAY_INVALID_ARGUMENT,
               "the size of inlay_piece");
  // None of it has changed the answer.
  inlay_free_generation(both[1]);
  inlay_free_cache(all_.back().cache);
  all_.pop_back();
  RunAll();
  EXPECT_EQ(one.tokens.size(), 20u);
}

int EndAtOnce(void*) { return 1; }

TEST_F(InlayCTogetherTest, ThePollEndsPromptsAlone) {
  options_.max_tokens = 1000;
  options_.ignore_end = 1;
  Start(prompt_);
  ASSERT_EQ(Step(), INLAY_OK);
  One& prompt = Start(std::vector<int32_t>(1'000'000, 100), 2'000'000);
  inlay_set_poll(EndAtOnce, nullptr);
  // Whenever the callback is asked for the first time.
  while (!prompt.done && prompt.steps < 900) ASSERT_EQ(Step(), INLAY_OK) << inlay_last_error();
  inlay_set_poll(nullptr, nullptr);
  EXPECT_EQ(prompt.status, INLAY_CANCELLED);
  EXPECT_EQ(inlay_cache_length(prompt.cache), 0u);
  EXPECT_FALSE(all_[0].done);
  EXPECT_EQ(all_[0].tokens.size(), prompt.steps + 1);
}

}  // namespace
}  // namespace inlay
