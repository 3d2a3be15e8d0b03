// Memory that runs out at the Nth allocation, for many N: an answer ends with an error or is the
// one that it is alone, whatever another one found no memory for, and its end is told once.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "serve/scheduler/batcher.h"
#include "tests/failing_memory.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/scheduler/known_answers.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;

constexpr size_t kContext = 128;

// It takes memory for each update, as replies do, but none to learn of ends.
class FaultListener final : public AnswerListener {
 public:
  explicit FaultListener(const Known& known) : known_(known), ends_(known.request.choices) {}

  void OnStart(const AnswerUsage&) override {}
  bool OnUpdate(const AnswerUpdate& update) override {
    updates_.emplace_back(update.text);
    return true;
  }
  void OnEnd(const AnswerEnd& end) override {
    ++ends_[end.choice];
    is_right_ = is_right_ && (end.status.ok() ? end.tokens == known_.alone[end.choice].tokens
                                              : absl::IsResourceExhausted(end.status));
    if (!end.status.ok()) ++failed_;
  }

  const std::vector<int>& ends() const { return ends_; }
  bool is_right() const { return is_right_; }
  int failed() const { return failed_; }

 private:
  const Known& known_;
  std::vector<int> ends_;  // of each choice
  std::list<std::string> updates_;
  bool is_right_ = true;
  int failed_ = 0;
};

class SchedulerFaultTest : public ::testing::Test {
 protected:
  Known Ask(size_t prompt, size_t max_tokens, size_t choices) {
    AnswerRequest request;
    for (size_t i = 0; i < prompt; ++i) request.prompt.push_back(static_cast<int32_t>(10 + i));
    request.options.max_tokens = max_tokens;
    request.options.ignore_eos = true;
    request.choices = choices;
    return Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, kContext, request);
  }

  std::unique_ptr<Batcher> Make() {
    return Must(Batcher::Create(*model_.engine, *model_.tokenizer,
                                {.context = kContext, .snapshot_stride = 16, .draft = 0}));
  }

  static std::shared_ptr<Ticket> TicketOf(const Known& known,
                                          std::shared_ptr<AnswerListener> listener) {
    auto ticket = std::make_shared<Ticket>();
    ticket->request = known.request;
    ticket->listener = std::move(listener);
    ticket->arrived = SteadyNow();
    return ticket;
  }

  const LoadedModel model_ = LoadBard();
};

TEST_F(SchedulerFaultTest, ARequestThatFindsNoPlaceInTheQueueEnds) {
  const Known known = Ask(5, 2, /*choices=*/3);
  for (const Fault fault : {Fault::kOnce, Fault::kFromThenOn}) {
    int survived = 0;
    for (long n = 0;; ++n) {
      const auto batcher = Make();
      const auto listener = std::make_shared<FaultListener>(known);
      const auto ticket = TicketOf(known, listener);
      failing_memory::FailAfter(n, fault);
      batcher->Add(ticket);
      failing_memory::Stop();
      if (!failing_memory::has_failed) break;
      EXPECT_TRUE(batcher->idle()) << "allocation " << n;
      EXPECT_EQ(listener->ends(), (std::vector<int>{1, 1, 1})) << "allocation " << n;
      EXPECT_EQ(listener->failed(), 3);
      ++survived;
    }
    EXPECT_GT(survived, 1);
  }
}

TEST_F(SchedulerFaultTest, AnswersAreRightOrEnd) {
  const Known one = Ask(5, 12, /*choices=*/1), two = Ask(60, 4, /*choices=*/2);
  int survived = 0, failed = 0;
  for (long n = 0;; n += 1 + n / 10) {
    const auto batcher = Make();
    const auto first = std::make_shared<FaultListener>(one);
    const auto second = std::make_shared<FaultListener>(two);
    const auto first_ticket = TicketOf(one, first), second_ticket = TicketOf(two, second);
    failing_memory::FailAfter(n, Fault::kOnce);
    batcher->Add(first_ticket);
    for (int step = 0; step < 200 && (step <= 2 || !batcher->idle()); ++step) {
      if (step == 2) batcher->Add(second_ticket);
      batcher->Step();
    }
    failing_memory::Stop();
    ASSERT_TRUE(batcher->idle()) << "allocation " << n;
    EXPECT_EQ(first->ends(), std::vector<int>{1}) << "allocation " << n;
    EXPECT_EQ(second->ends(), (std::vector<int>{1, 1})) << "allocation " << n;
    EXPECT_TRUE(first->is_right() && second->is_right()) << "allocation " << n;
    EXPECT_EQ(batcher->stats().reserved_bytes, 0u) << "allocation " << n;
    failed += first->failed() + second->failed();
    if (!failing_memory::has_failed || HasFailure()) break;
    ++survived;
  }
  EXPECT_GT(survived, 20);
  EXPECT_GT(failed, 0);
}

TEST_F(SchedulerFaultTest, AnswersEndWhereThereIsNoMemoryAnyMore) {
  const Known one = Ask(5, 12, /*choices=*/1), two = Ask(60, 4, /*choices=*/2);
  int survived = 0;
  for (long n = 0;; n += 1 + n / 10) {
    const auto batcher = Make();
    const auto first = std::make_shared<FaultListener>(one);
    const auto second = std::make_shared<FaultListener>(two);
    const auto first_ticket = TicketOf(one, first), second_ticket = TicketOf(two, second);
    failing_memory::FailAfter(n, Fault::kFromThenOn);
    batcher->Add(first_ticket);
    batcher->Add(second_ticket);
    for (int step = 0; step < 200 && !batcher->idle(); ++step) batcher->Step();
    failing_memory::Stop();
    ASSERT_TRUE(batcher->idle()) << "allocation " << n;
    EXPECT_EQ(first->ends(), std::vector<int>{1}) << "allocation " << n;
    EXPECT_EQ(second->ends(), (std::vector<int>{1, 1})) << "allocation " << n;
    EXPECT_TRUE(first->is_right() && second->is_right()) << "allocation " << n;
    if (!failing_memory::has_failed || HasFailure()) break;
    ++survived;
  }
  EXPECT_GT(survived, 20);
}

}  // namespace
}  // namespace inlay::serve
