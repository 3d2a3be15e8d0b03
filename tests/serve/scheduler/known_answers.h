// Requests whose answers are known, and what a listener was told of them.
#ifndef INLAY_TESTS_SERVE_SCHEDULER_KNOWN_ANSWERS_H_
#define INLAY_TESTS_SERVE_SCHEDULER_KNOWN_ANSWERS_H_

#include <gtest/gtest.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gemma_like/engine.h"
#include "gemma_like/generation/generate.h"
#include "io/tokenizer/tokenizer.h"
#include "ops/attention/kv_type.h"
#include "serve/scheduler/answer_request.h"
#include "tests/must.h"
#include "tests/wait_until.h"

namespace inlay::serve {

// What a listener was told of one answer.
struct Told {
  std::string text;
  std::vector<ChosenToken> chosen;
  std::optional<AnswerEnd> end;
};

class Listener final : public AnswerListener {
 public:
  // It wants no more than `enough` bytes of an answer.
  explicit Listener(size_t choices, size_t enough = std::numeric_limits<size_t>::max())
      : enough_(enough), told_(choices) {}

  void OnStart(const AnswerUsage& usage) override {
    const std::lock_guard lock(mutex_);
    ++starts_;
    usage_ = usage;
  }
  bool OnUpdate(const AnswerUpdate& update) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(starts_, 1);
    Told& told = told_.at(update.choice);
    EXPECT_FALSE(told.end.has_value());
    told.text.append(update.text.data(), update.text.size());
    told.chosen.insert(told.chosen.end(), update.chosen.begin(), update.chosen.end());
    return told.text.size() < enough_;
  }
  void OnEnd(const AnswerEnd& end) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(told_.at(end.choice).end.has_value()) << "an end is told once";
    told_[end.choice].end = end;
    if (++ends_ == told_.size()) ended_.notify_all();
  }

  bool ended() const {
    const std::lock_guard lock(mutex_);
    return ends_ == told_.size();
  }
  void Wait() const {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(ended_.wait_for(lock, kLongWait, [this] { return ends_ == told_.size(); }));
  }
  // What it was told, once the answers have ended.
  const Told& told(size_t choice = 0) const { return told_[choice]; }
  const AnswerUsage& usage() const { return usage_; }

 private:
  const size_t enough_;
  mutable std::mutex mutex_;  // guards the members below
  mutable std::condition_variable ended_;
  std::vector<Told> told_;
  AnswerUsage usage_;
  int starts_ = 0;
  size_t ends_ = 0;
};

// A request, and what each of its answers is when nothing else runs.
struct Known {
  AnswerRequest request;
  std::vector<GenerateResult> alone;
};

inline Known Compute(Engine& engine, const Tokenizer& tokenizer, KvType type, size_t context,
                     AnswerRequest request) {
  Known known{.request = request, .alone = {}};
  for (size_t choice = 0; choice < request.choices; ++choice) {
    auto cache = Must(engine.CreateCache({.max_length = context}, type));
    GenerateOptions options = request.options;
    options.sampling.choice = static_cast<uint32_t>(choice);
    known.alone.push_back(Must(Generate(engine, tokenizer, *cache, request.prompt, options)));
  }
  return known;
}

inline void ExpectSame(const Told& told, const GenerateResult& alone) {
  ASSERT_TRUE(told.end.has_value());
  ASSERT_TRUE(told.end->status.ok()) << told.end->status;
  EXPECT_EQ(told.end->tokens, alone.tokens);
  EXPECT_EQ(told.text, alone.text);
  EXPECT_EQ(told.end->reason, alone.stop_reason);
  EXPECT_EQ(told.chosen, alone.chosen);
}

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SCHEDULER_KNOWN_ANSWERS_H_
