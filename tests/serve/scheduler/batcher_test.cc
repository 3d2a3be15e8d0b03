// The scheduler without its thread: turns, memory and places.
#include "serve/scheduler/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "cache/cache_bytes.h"
#include "serve/scheduler/scheduler.h"
#include "tests/gemma_like/counting_engine.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/scheduler/known_answers.h"

namespace inlay::serve {
namespace {

class BatcherTest : public ::testing::Test {
 protected:
  std::unique_ptr<Batcher> Make(const SchedulerOptions& options) {
    return Must(Batcher::Create(*model_.engine, *model_.tokenizer, options));
  }

  // An answer that does not end by itself.
  AnswerRequest Request(size_t max_tokens) const {
    AnswerRequest request;
    request.prompt = Must(model_.tokenizer->Encode("To be"));
    request.options.max_tokens = max_tokens;
    request.options.ignore_eos = true;
    request.options.sampling.temperature = 0;
    return request;
  }

  static std::shared_ptr<Listener> Add(Batcher& batcher, AnswerRequest request) {
    return AddTicket(batcher, std::move(request)).first;
  }

  static std::pair<std::shared_ptr<Listener>, std::shared_ptr<Ticket>> AddTicket(
      Batcher& batcher, AnswerRequest request) {
    auto ticket = std::make_shared<Ticket>();
    const auto listener = std::make_shared<Listener>(request.choices);
    ticket->request = std::move(request);
    ticket->listener = listener;
    batcher.Add(ticket);
    return {listener, ticket};
  }

  static size_t Ended(const std::vector<std::shared_ptr<Listener>>& listeners) {
    return std::count_if(listeners.begin(), listeners.end(),
                         [](const auto& listener) { return listener->ended(); });
  }

  // Of a conversation of so many tokens.
  size_t MemoryFor(size_t length) const {
    const CacheBytes plan = model_.engine->PlanCache();
    return plan.At(length) + plan.append + plan.snapshot +
           5 * model_.engine->info().vocab_size * sizeof(float);
  }

  LoadedModel model_ = LoadBard();
};

// A request for which there is a place does not wait.
TEST_F(BatcherTest, TheQueueIsForThoseThatMustWait) {
  auto scheduler = Must(Scheduler::Create(*model_.engine, *model_.tokenizer,
                                          {.context = 256, .most_running = 2, .most_waiting = 0}));
  for (uint64_t round = 1; round <= 3; ++round) {
    std::vector<std::shared_ptr<Listener>> listeners;
    for (int i = 0; i < 2; ++i) {
      listeners.push_back(std::make_shared<Listener>(1));
      Must(scheduler->Submit(Request(200), listeners.back()));
    }
    const absl::Status status =
        scheduler->Submit(Request(1), std::make_shared<Listener>(1)).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(scheduler->stats().refused, round);
    for (const auto& listener : listeners) listener->Wait();
  }
}

// Where memory keeps an answer waiting, places are of no use to the next.
TEST_F(BatcherTest, PlacesWithoutMemoryAreNotFree) {
  const SchedulerOptions options{.context = 256, .memory = MemoryFor(256)};
  const auto batcher = Make(options);
  EXPECT_EQ(batcher->stats().free_places, options.most_running);
  for (int i = 0; i < 2; ++i) Add(*batcher, Request(200));
  batcher->Step();
  EXPECT_EQ(batcher->stats().running, 1u);
  EXPECT_EQ(batcher->stats().waiting, 1u);
  EXPECT_EQ(batcher->stats().free_places, 0u);
  while (!batcher->idle()) batcher->Step();
  EXPECT_EQ(batcher->stats().free_places, options.most_running);
}

// What is paused for lack of memory needs the same again when it goes on.
TEST_F(BatcherTest, AnswersTakeTurnsWhereTheSystemHasMemoryForOne) {
  CountingEngine engine(*model_.engine);
  const auto batcher =
      Must(Batcher::Create(engine, *model_.tokenizer, {.context = 256, .most_running = 4}));
  engine.before_forward = [&] {
    if (batcher->stats().running > 1) throw std::bad_alloc();
  };
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 4; ++i) listeners.push_back(Add(*batcher, Request(20)));
  for (int step = 0; step < 1000 && !batcher->idle(); ++step) batcher->Step();
  ASSERT_TRUE(batcher->idle());
  for (const auto& listener : listeners) EXPECT_TRUE(listener->told().end->status.ok());
  EXPECT_GT(batcher->stats().pauses, 0u);
  engine.before_forward = nullptr;
  for (int i = 0; i < 3; ++i) Add(*batcher, Request(1));
  while (!batcher->idle()) batcher->Step();
  EXPECT_EQ(batcher->stats().free_places, 4u) << "again, as answers have ended";
}

// Owner 1 has short prompts and long answers, owner 2 long prompts and short answers, of half as
// many tokens in all.
TEST_F(BatcherTest, OwnersTakeTurnsByAllTokensThatTheyAreGiven) {
  const auto batcher = Make({.context = 256, .most_running = 1});
  std::vector<std::shared_ptr<Listener>> answers, prompts;
  for (int i = 0; i < 20; ++i) {
    AnswerRequest request = Request(100);
    request.owner = 1;
    answers.push_back(Add(*batcher, request));
    request.owner = request.prefix_owner = 2;
    request.options.max_tokens = 1;
    request.prompt.assign(50, 5 + i);  // which begins as no other
    prompts.push_back(Add(*batcher, request));
  }
  for (const size_t wanted : {6, 15, 24}) {
    while (Ended(answers) + Ended(prompts) < wanted) batcher->Step();
    EXPECT_NEAR(2.0 * static_cast<double>(Ended(answers)), static_cast<double>(Ended(prompts)), 2);
  }
}

// What is reused costs its owner nothing.
TEST_F(BatcherTest, CachedTokensAreNotCharged) {
  const auto batcher = Make({.context = 256, .most_running = 1});
  std::vector<std::shared_ptr<Listener>> cached, others;
  for (int i = 0; i < 40; ++i) {
    AnswerRequest request = Request(1);
    request.prompt.assign(100, 5);
    request.owner = 1;
    cached.push_back(Add(*batcher, request));
    request.owner = request.prefix_owner = 2;
    request.prompt.assign(100, 6 + i);
    others.push_back(Add(*batcher, request));
  }
  while (Ended(cached) < 30) batcher->Step();
  EXPECT_LT(Ended(others), 5u);
}

// A prompt most of which was computed before is as short as what is left of it.
TEST_F(BatcherTest, PromptsGoByWhatIsLeftOfThem) {
  const auto batcher = Make({.context = 256, .step = absl::Nanoseconds(1)});
  AnswerRequest known = Request(1);
  known.prompt.assign(150, 5);
  Add(*batcher, known);
  while (!batcher->idle()) batcher->Step();
  // While this answers, each step has few tokens of prompts.
  Add(*batcher, Request(200));
  for (int i = 0; i < 5; ++i) batcher->Step();
  AnswerRequest long_one = Request(1);
  long_one.prompt.assign(200, 6);
  const auto oldest = Add(*batcher, long_one);
  long_one.prompt.assign(100, 7);
  const auto shorter = Add(*batcher, long_one);
  known.prompt.insert(known.prompt.end(), {8, 9, 10});
  const auto rest = Add(*batcher, known);
  for (int i = 0; i < 3; ++i) batcher->Step();
  EXPECT_TRUE(rest->ended());
  EXPECT_GT(rest->usage().cached_tokens, 100u);
  EXPECT_FALSE(shorter->ended());
  EXPECT_FALSE(oldest->ended());
}

// What runs, and what is paused, keeps what it has; what has nothing yet is cancelled.
TEST_F(BatcherTest, StoppedAnswersKeepWhatTheyHave) {
  const auto batcher =
      Make({.context = 256, .memory = MemoryFor(256) + MemoryFor(64), .reserve = 16});
  const auto [low, low_ticket] = AddTicket(*batcher, Request(1000));
  for (int i = 0; i < 10; ++i) batcher->Step();
  AnswerRequest request = Request(1000);
  request.priority = 1;
  const auto [high, high_ticket] = AddTicket(*batcher, request);
  while (batcher->stats().pauses == 0) batcher->Step();
  EXPECT_EQ(batcher->stats().waiting, 1u);
  const auto [late, late_ticket] = AddTicket(*batcher, Request(1000));
  low_ticket->stopped = high_ticket->stopped = late_ticket->stopped = true;
  batcher->Step();
  EXPECT_TRUE(batcher->idle());
  for (const auto& listener : {low, high}) {
    ASSERT_TRUE(listener->ended());
    const AnswerEnd& end = *listener->told().end;
    EXPECT_TRUE(end.status.ok()) << end.status;
    EXPECT_EQ(end.reason, StopReason::kCancelled);
    EXPECT_FALSE(end.tokens.empty());
    EXPECT_EQ(end.usage.completion_tokens, end.tokens.size());
  }
  ASSERT_TRUE(late->ended());
  EXPECT_EQ(late->told().end->status.code(), absl::StatusCode::kCancelled);
}

// An answer of low priority gives its memory to one of a higher, whichever came first.
TEST_F(BatcherTest, MemoryGoesToHigherPriorities) {
  const auto batcher =
      Make({.context = 256, .memory = MemoryFor(256) + MemoryFor(64), .reserve = 16});
  AnswerRequest request = Request(1000);
  const auto low = Add(*batcher, request);
  batcher->Step();
  request.priority = 1;
  const auto high = Add(*batcher, request);
  while (!low->ended() && !high->ended()) batcher->Step();
  EXPECT_TRUE(high->ended());
  EXPECT_GT(batcher->stats().pauses, 0u);
  while (!batcher->idle()) batcher->Step();
  EXPECT_EQ(low->told().end->tokens, high->told().end->tokens);
}

}  // namespace
}  // namespace inlay::serve
