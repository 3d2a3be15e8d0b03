// Answers of every family through the scheduler: the same bytes as alone, under any load, with any
// memory, through pauses, cancels and reuse.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/steady_time.h"
#include "cache/cache_bytes.h"
#include "gemma_like/generation/draft_policy.h"
#include "io/tokenizer/load_tokenizer.h"
#include "serve/scheduler/batcher.h"
#include "serve/scheduler/scheduler.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/must.h"
#include "tests/serve/scheduler/known_answers.h"

namespace inlay::serve {
namespace {

class SchedulerTest : public FamilyTest {
 protected:
  static constexpr size_t kContext = 400;

  void SetUp() override {
    FamilyTest::SetUp();
    tokenizer_ = Must(LoadTokenizer(*file_));
  }

  // Prompts that share beginnings, of different lengths, with different options.
  std::vector<Known> MakeRequests(std::mt19937_64& random, size_t count) {
    std::vector<Known> requests;
    for (size_t i = 0; i < count; ++i) {
      AnswerRequest request;
      const std::vector<int32_t>& text = texts_[random() % kTexts];
      const size_t length = random() % 3 == 0 ? 1 + random() % 8 : 1 + random() % 300;
      request.prompt.assign(text.begin(), text.begin() + static_cast<ptrdiff_t>(length));
      request.options.sampling.seed = random() % 3;
      request.options.sampling.temperature = random() % 2 == 0 ? 0.0f : 1.0f;
      if (random() % 3 != 0) request.options.max_tokens = random() % 40;
      if (random() % 4 == 0) request.choices = 1 + random() % 3;
      if (random() % 4 == 0) request.options.sampling.presence_penalty = 0.5f;
      if (length > 2) request.marks = {length / 2};
      if (random() % 3 == 0) {
        request.options.top_chances = random() % 3;
        request.options.end_chance = random() % 2 == 0;
        if (random() % 2 == 0) request.options.score_from = 1 + random() % length;
      }
      request.owner = static_cast<int32_t>(random() % 3);
      request.prefix_owner = random() % 2 == 0 ? request.owner : 0;
      request.priority = static_cast<int>(random() % 2);
      requests.push_back(
          Compute(*models_[0], *tokenizer_, GetParam().type, kContext, std::move(request)));
    }
    return requests;
  }

  // Enough memory for so many of the longest conversations.
  size_t MemoryFor(double conversations) const {
    const CacheBytes plan = models_[0]->PlanCache(GetParam().type);
    return static_cast<size_t>(conversations *
                               static_cast<double>(plan.At(kContext) + plan.append + plan.snapshot +
                                                   5 * vocab_ * sizeof(float)));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
};

INSTANTIATE_TEST_SUITE_P(Families, SchedulerTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

// One random run of the batcher: requests arrive and are cancelled between steps.
TEST_P(SchedulerTest, AnswersAreTheSameUnderAnyLoad) {
  std::mt19937_64 random(Seed());
  const std::vector<Known> requests = MakeRequests(random, 24);
  const size_t runs = std::max<size_t>(1, Steps() / 300);
  uint64_t pauses = 0, cached = 0, answers = 0, accepted = 0;
  for (size_t run = 0; run < runs; ++run) {
    const bool with_draft_model = run % 2 == 1;
    // In every second of these runs drafts have memory, and pay. In the others both depend on the
    // run, the machine and its load: a share of the memory may be too little, and costs are timed.
    const bool drafts_pay = run % 4 == 1;
    std::optional<DraftCosts> draft_costs;
    if (drafts_pay) draft_costs = {.pass = 0.01, .row = 0.01};
    const double conversations = drafts_pay ? 10 : 1.2 + static_cast<double>(random() % 12) / 4;
    const SchedulerOptions options{
        .kv_type = GetParam().type,
        .context = kContext,
        .memory = MemoryFor(conversations * (with_draft_model ? 1.2 : 1)),
        .reserve = 16,
        .most_running = 1 + random() % 12,
        .step = absl::Milliseconds(1 + random() % 5),
        .snapshot_stride = random() % 2 * 64,
        .draft = with_draft_model ? 1 + random() % 4 : random() % 5,
        .draft_model = with_draft_model ? models_[random() % 3].get() : nullptr,
        .draft_costs = draft_costs};
    auto batcher = Must(Batcher::Create(*models_[random() % 3], *tokenizer_, options));
    ASSERT_EQ(batcher->context(), kContext);
    struct Sent {
      const Known* known;
      std::shared_ptr<Ticket> ticket;
      std::shared_ptr<Listener> listener;
      bool cancelled = false;
    };
    std::vector<Sent> sent;
    const size_t most = 60;
    while (sent.size() < most || !batcher->idle()) {
      while (sent.size() < most && random() % 3 == 0) {
        const Known& known = requests[random() % requests.size()];
        ASSERT_TRUE(batcher->Check(known.request).ok());
        Sent s{.known = &known,
               .ticket = std::make_shared<Ticket>(),
               .listener = std::make_shared<Listener>(known.request.choices)};
        s.ticket->request = known.request;
        s.ticket->listener = s.listener;
        s.ticket->arrived = SteadyNow();
        batcher->Add(s.ticket);
        sent.push_back(std::move(s));
      }
      if (!sent.empty() && random() % 40 == 0) {
        Sent& s = sent[random() % sent.size()];
        s.cancelled = s.cancelled || !s.listener->ended();
        s.ticket->cancelled = true;
      }
      batcher->Step();
      ASSERT_LE(batcher->stats().used_bytes, options.memory);
      ASSERT_LE(batcher->stats().reserved_bytes, options.memory);
    }
    for (const Sent& s : sent) {
      ASSERT_TRUE(s.listener->ended());
      for (size_t n = 0; n < s.known->request.choices; ++n) {
        const Told& told = s.listener->told(n);
        if (s.cancelled && absl::IsCancelled(told.end->status)) continue;
        ExpectSame(told, s.known->alone[n]);
        ++answers;
      }
    }
    const SchedulerStats stats = batcher->stats();
    EXPECT_EQ(stats.failed, 0u);
    EXPECT_EQ(stats.reserved_bytes, 0u);
    pauses += stats.pauses;
    cached += stats.cached_tokens;
    if (drafts_pay) accepted += stats.accepted_tokens;
  }
  EXPECT_GT(answers, runs * 20);
  // Where memory does not grow with the length, no answer ever has to give way.
  const bool grows = models_[0]->PlanCache(GetParam().type).per_block > 0;
  EXPECT_EQ(pauses > 0, grows) << pauses;
  EXPECT_GT(cached, 0u);
  EXPECT_TRUE(runs < 2 || accepted > 0) << "the model drafts for itself";
}

TEST_P(SchedulerTest, ManyThreadsSubmitAndCancel) {
  std::mt19937_64 seeds(Seed() + 1);
  const std::vector<Known> requests = MakeRequests(seeds, 10);
  auto scheduler = Must(Scheduler::Create(*models_[1], *tokenizer_,
                                          {.kv_type = GetParam().type,
                                           .context = kContext,
                                           .memory = MemoryFor(3),
                                           .step = absl::Milliseconds(2),
                                           .snapshot_stride = 64}));
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, seed = seeds()] {
      std::mt19937_64 random(seed);
      for (int i = 0; i < 15; ++i) {
        const Known& known = requests[random() % requests.size()];
        const auto listener = std::make_shared<Listener>(known.request.choices);
        const uint64_t id = Must(scheduler->Submit(known.request, listener));
        const bool cancelled = random() % 5 == 0;
        if (cancelled) scheduler->Cancel(id);
        listener->Wait();
        for (size_t n = 0; n < known.request.choices; ++n) {
          if (cancelled && absl::IsCancelled(listener->told(n).end->status)) continue;
          ExpectSame(listener->told(n), known.alone[n]);
        }
        (void)scheduler->stats();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(scheduler->stats().requests, 45u);
}

}  // namespace
}  // namespace inlay::serve
