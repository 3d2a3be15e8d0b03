// Answers through the scheduler: the same bytes as alone, under any load, with any memory, through
// pauses, cancels and reuse.
#include "serve/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cache/cache_bytes.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "io/tokenizer/load_tokenizer.h"
#include "serve/scheduler/batcher.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

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
    ended_.wait(lock, [this] { return ends_ == told_.size(); });
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

Known Compute(Engine& engine, const Tokenizer& tokenizer, KvType type, size_t context,
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

void ExpectSame(const Told& told, const GenerateResult& alone) {
  ASSERT_TRUE(told.end.has_value());
  ASSERT_TRUE(told.end->status.ok()) << told.end->status;
  EXPECT_EQ(told.end->tokens, alone.tokens);
  EXPECT_EQ(told.text, alone.text);
  EXPECT_EQ(told.end->reason, alone.stop_reason);
  EXPECT_EQ(told.chosen, alone.chosen);
}

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
  uint64_t pauses = 0, cached = 0, answers = 0;
  for (size_t run = 0; run < runs; ++run) {
    const SchedulerOptions options{
        .kv_type = GetParam().type,
        .context = kContext,
        .memory = MemoryFor(1.2 + static_cast<double>(random() % 12) / 4),
        .reserve = 16,
        .most_running = 1 + random() % 12,
        .step = absl::Milliseconds(1 + random() % 5),
        .snapshot_stride = random() % 2 * 64,
        .draft = random() % 5};
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
        s.ticket->arrived = absl::Now();
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
  }
  EXPECT_GT(answers, runs * 20);
  // Where memory does not grow with the length, no answer ever has to give way.
  const bool grows = models_[0]->PlanCache(GetParam().type).per_block > 0;
  EXPECT_EQ(pauses > 0, grows) << pauses;
  EXPECT_GT(cached, 0u);
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

// The demo model, which has a vocabulary.
class BardSchedulerTest : public ::testing::Test {
 protected:
  std::unique_ptr<Scheduler> Make(SchedulerOptions options = {}) {
    options.context = 256;
    return Must(Scheduler::Create(*model_.engine, *model_.tokenizer, options));
  }

  AnswerRequest Request(absl::string_view text, size_t max_tokens) const {
    AnswerRequest request;
    request.prompt = Must(model_.tokenizer->Encode(text));
    request.options.max_tokens = max_tokens;
    request.options.sampling.temperature = 0;
    return request;
  }

  LoadedModel model_ = LoadBard();
};

TEST_F(BardSchedulerTest, TextsStopTextsAndChancesArriveAsTheyAreAlone) {
  AnswerRequest request = Request("ROMEO:\n", 60);
  const std::string whole =
      Compute(*model_.engine, *model_.tokenizer, KvType::kF32, 256, request).alone[0].text;
  ASSERT_GT(whole.size(), 20u);
  request.options.stop_texts = {"none", whole.substr(12, 4)};
  request.options.top_chances = 3;
  const Known known = Compute(*model_.engine, *model_.tokenizer, KvType::kF32, 256, request);
  auto scheduler = Make();
  const auto listener = std::make_shared<Listener>(1);
  Must(scheduler->Submit(request, listener));
  listener->Wait();
  const Told& told = listener->told();
  ExpectSame(told, known.alone[0]);
  EXPECT_EQ(told.end->reason, StopReason::kStopText);
  EXPECT_EQ(told.end->stop_text, whole.substr(12, 4));
  ASSERT_EQ(told.chosen.size(), told.end->tokens.size());
  for (size_t i = 0; i < told.chosen.size(); ++i) {
    EXPECT_EQ(told.chosen[i].token, told.end->tokens[i]);
    ASSERT_EQ(told.chosen[i].top.size(), 3u);
    EXPECT_EQ(told.chosen[i].top[0].token, told.chosen[i].token) << "the likeliest was chosen";
    EXPECT_EQ(told.chosen[i].top[0].logprob, told.chosen[i].logprob);
    EXPECT_LT(told.chosen[i].logprob, 0);
  }
  EXPECT_EQ(listener->usage().prompt_tokens, request.prompt.size());
}

// The first answer scores the prompt for all of them; a snapshot of the prompt is of no use to it.
TEST_F(BardSchedulerTest, EachAnswerBeginsWithTheScoresOfThePrompt) {
  AnswerRequest request = Request("What light through yonder window breaks?", 4);
  request.options.sampling.temperature = 1;
  request.options.top_chances = 2;
  request.options.score_from = 3;
  request.choices = 3;
  const Known known = Compute(*model_.engine, *model_.tokenizer, KvType::kF32, 256, request);
  auto scheduler = Make({.snapshot_stride = 2});
  for (int round = 0; round < 2; ++round) {
    const auto listener = std::make_shared<Listener>(3);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    for (size_t n = 0; n < 3; ++n) {
      ExpectSame(listener->told(n), known.alone[n]);
      EXPECT_GE(listener->told(n).chosen.size(), request.prompt.size() - 3);
    }
    EXPECT_EQ(listener->told(0).end->usage.cached_tokens, round == 0 ? 0u : 2u);
    EXPECT_GT(listener->told(1).end->usage.cached_tokens, 2u);
  }
}

TEST_F(BardSchedulerTest, RowsOfLogitsForScoresArePromised) {
  const SchedulerOptions options{.context = 256};
  const auto reserved = [&](std::optional<size_t> score_from) {
    auto batcher = Must(Batcher::Create(*model_.engine, *model_.tokenizer, options));
    auto ticket = std::make_shared<Ticket>();
    ticket->request = Request("To be", 0);
    ticket->request.prompt.resize(200, 5);
    ticket->request.options.top_chances = 0;
    ticket->request.options.score_from = score_from;
    ticket->listener = std::make_shared<Listener>(1);
    batcher->Add(ticket);
    // Between steps: a prompt that is scored takes several.
    size_t most = 0, steps = 0;
    while (!batcher->idle()) {
      batcher->Step();
      most = std::max(most, batcher->stats().reserved_bytes);
      ++steps;
    }
    EXPECT_EQ(batcher->stats().first_token.sum, 0) << "there was none";
    EXPECT_EQ(steps, score_from.has_value() ? (200 + kMostScoredRows - 1) / kMostScoredRows : 1);
    return most;
  };
  const CacheBytes plan = model_.engine->PlanCache();
  EXPECT_EQ(reserved(1), plan.At(204) + plan.append + plan.snapshot +
                             kMostScoredRows * model_.engine->info().vocab_size * sizeof(float));
  EXPECT_EQ(reserved(std::nullopt), 0u) << "it takes one step";
}

// Where there is memory for the longest conversation alone and few rows of logits, prompts are
// scored in short steps; a prompt without an answer may fill the context.
TEST_F(BardSchedulerTest, ScoresAWholeContextInLittleMemory) {
  const CacheBytes plan = model_.engine->PlanCache();
  SchedulerOptions options;
  options.memory = plan.At(128) + plan.append + plan.snapshot +
                   5 * model_.engine->info().vocab_size * sizeof(float);
  auto scheduler = Make(options);
  ASSERT_EQ(scheduler->context(), 128u);
  AnswerRequest request = Request("To be", 0);
  while (request.prompt.size() < 128) request.prompt.push_back(request.prompt.size() % 100 + 5);
  request.options.top_chances = 1;
  request.options.score_from = 1;
  const Known known = Compute(*model_.engine, *model_.tokenizer, KvType::kF32, 128, request);
  ASSERT_EQ(known.alone[0].chosen.size(), 127u);
  for (int round = 0; round < 3; ++round) {
    const auto listener = std::make_shared<Listener>(1);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    ExpectSame(listener->told(), known.alone[0]);
  }
}

// Steps of answers with a shape differ in length, where their text must come; memory for them is
// promised, taken away and given again as for others.
TEST_F(BardSchedulerTest, AnswersOfAShapeAreTheSameUnderAnyLoad) {
  std::mt19937_64 random(7);
  AnswerGrammars grammars(*model_.tokenizer);
  std::vector<std::shared_ptr<const AnswerGrammar>> shapes = {nullptr};
  for (const char* source :
       {R"({"type":"object","properties":{"name":{"type":"string","maxLength":12},"fool":)"
        R"({"type":"boolean"}},"required":["name","fool"],"additionalProperties":false})",
        R"({"enum":["To be, or not to be: that is the question","Exit, pursued by a bear"]})",
        R"({"type":"array","items":{"type":"integer","minimum":0,"maximum":99},"maxItems":6})"}) {
    shapes.push_back(Must(grammars.Get({.source = source, .in_order = true})));
  }
  std::vector<Known> requests;
  for (size_t i = 0; i < 16; ++i) {
    AnswerRequest request = Request(i % 2 == 0 ? "ROMEO:\n" : "To be, or not to be, that is", 60);
    if (i % 3 == 0) request.options.max_tokens = std::numeric_limits<size_t>::max();
    request.options.sampling.temperature = 1.2f;
    request.options.sampling.seed = i;
    request.options.grammar = shapes[i % shapes.size()];
    request.choices = 1 + i % 3 / 2;
    requests.push_back(Compute(*model_.engine, *model_.tokenizer, KvType::kF32, 160, request));
  }
  const CacheBytes plan = model_.engine->PlanCache(KvType::kF32);
  const size_t vocab_size = model_.engine->info().vocab_size;
  uint64_t pauses = 0;
  for (size_t run = 0; run < 6; ++run) {
    const SchedulerOptions options{
        .context = 160,
        // For the beginnings of two conversations, of which one can grow.
        .memory = 2 * (plan.At(40) + plan.append + plan.snapshot + 5 * vocab_size * sizeof(float)) +
                  plan.per_block,
        .reserve = 8,
        .draft = random() % 5};
    auto batcher = Must(Batcher::Create(*model_.engine, *model_.tokenizer, options));
    std::vector<std::shared_ptr<Listener>> listeners;
    for (const Known& known : requests) {
      auto ticket = std::make_shared<Ticket>();
      listeners.push_back(std::make_shared<Listener>(known.request.choices));
      ticket->request = known.request;
      ticket->listener = listeners.back();
      ticket->arrived = absl::Now();
      batcher->Add(ticket);
      for (size_t steps = random() % 6; steps > 0; --steps) batcher->Step();
    }
    while (!batcher->idle()) batcher->Step();
    for (size_t i = 0; i < requests.size(); ++i) {
      for (size_t n = 0; n < requests[i].request.choices; ++n)
        ExpectSame(listeners[i]->told(n), requests[i].alone[n]);
    }
    pauses += batcher->stats().pauses;
  }
  EXPECT_GT(pauses, 0u);
}

TEST_F(BardSchedulerTest, AListenerThatHasEnoughEndsTheAnswer) {
  auto scheduler = Make();
  const auto listener = std::make_shared<Listener>(1, 10);
  Must(scheduler->Submit(Request("ROMEO:\n", 100), listener));
  listener->Wait();
  EXPECT_TRUE(listener->told().end->status.ok());
  EXPECT_EQ(listener->told().end->reason, StopReason::kCancelled);
  EXPECT_GE(listener->told().text.size(), 10u);
  EXPECT_LT(listener->told().end->tokens.size(), 60u);
}

TEST_F(BardSchedulerTest, PrefixesAreTheOwnersAlone) {
  auto scheduler = Make({.snapshot_stride = 8});
  const auto cached = [&](int32_t owner, absl::string_view text) {
    AnswerRequest request = Request(text, 1);
    request.owner = owner;
    const auto listener = std::make_shared<Listener>(1);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    EXPECT_TRUE(listener->told().end->status.ok());
    return listener->usage().cached_tokens;
  };
  const std::string text = "What light through yonder window breaks? It is the east.";
  EXPECT_EQ(cached(1, text), 0u);
  EXPECT_GT(cached(1, text), 10u);
  EXPECT_EQ(cached(2, text), 0u) << "of another owner";
  EXPECT_GT(cached(2, text), 10u);
}

// The first prompt leaves a snapshot at its end alone. The second shares its beginning, but goes on
// otherwise, so what it shares is computed again, and a snapshot is left where the two part: the
// third begins there.
TEST_F(BardSchedulerTest, SnapshotsAreLeftWherePromptsPart) {
  auto scheduler = Make({.snapshot_stride = 0, .draft = 0});
  std::vector<int32_t> shared;
  for (int32_t i = 0; i < 150; ++i) shared.push_back(10 + i);
  const auto cached = [&](int32_t first, size_t more) {
    AnswerRequest request;
    request.prompt = shared;
    for (size_t i = 0; i < more; ++i) request.prompt.push_back(first + static_cast<int32_t>(i));
    request.options.max_tokens = 1;
    const auto listener = std::make_shared<Listener>(1);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    EXPECT_TRUE(listener->told().end->status.ok());
    return listener->usage().cached_tokens;
  };
  EXPECT_EQ(cached(200, 90), 0u);
  EXPECT_LT(cached(400, 90), shared.size()) << "further back than a rewind goes";
  EXPECT_EQ(cached(600, 90), shared.size());
}

TEST_F(BardSchedulerTest, ChatsLeaveNoSecondSnapshotAtTheirEnd) {
  auto scheduler = Make({.snapshot_stride = 0, .draft = 0});
  AnswerRequest request = Request("What light through yonder window breaks?", 1);
  request.marks = {request.prompt.size() - 2};
  const auto listener = std::make_shared<Listener>(1);
  Must(scheduler->Submit(request, listener));
  listener->Wait();
  scheduler->Drain(absl::InfiniteDuration());
  EXPECT_EQ(scheduler->stats().snapshots, 2u) << "before the generation prompt, after the answer";
}

TEST_F(BardSchedulerTest, RefusesWhatCannotBeAnswered) {
  auto scheduler = Make();
  const auto refused = [&](const AnswerRequest& request) {
    return scheduler->Submit(request, std::make_shared<Listener>(1)).status();
  };
  AnswerRequest request = Request("a", 1);
  request.prompt.assign(256, 1);
  EXPECT_EQ(refused(request).code(), absl::StatusCode::kOutOfRange);
  EXPECT_THAT(refused(request).message(), HasSubstr("256 tokens"));
  request.prompt = {1, 100'000};
  EXPECT_THAT(refused(request).message(), HasSubstr("token 100000"));
  request.prompt = {-1};
  EXPECT_THAT(refused(request).message(), HasSubstr("token -1"));
  request.prompt = {};
  EXPECT_THAT(refused(request).message(), HasSubstr("empty"));
  request = Request("a", 1);
  request.options.sampling.top_p = 2;
  EXPECT_THAT(refused(request).message(), HasSubstr("top-p is 2"));
  request = Request("a", 1);
  request.options.top_chances = 0;
  request.options.score_from = 9;
  EXPECT_THAT(refused(request).message(), HasSubstr("score_from is 9"));
}

TEST_F(BardSchedulerTest, ADeadlineEndsAnAnswer) {
  auto scheduler = Make();
  AnswerRequest request = Request("To be", 200);
  request.deadline = absl::Now() - absl::Seconds(1);
  request.choices = 2;
  const auto listener = std::make_shared<Listener>(2);
  Must(scheduler->Submit(request, listener));
  listener->Wait();
  for (size_t n : {0, 1}) {
    EXPECT_EQ(listener->told(n).end->status.code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST_F(BardSchedulerTest, AFullQueueRefuses) {
  auto scheduler = Make({.most_running = 1, .most_waiting = 0});
  const absl::Status status =
      scheduler->Submit(Request("a", 1), std::make_shared<Listener>(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(scheduler->stats().refused, 1u);
}

TEST_F(BardSchedulerTest, DrainEndsWhatRunsAndAcceptsNothing) {
  auto scheduler = Make();
  const auto listener = std::make_shared<Listener>(1);
  Must(scheduler->Submit(Request("To be", 40), listener));
  scheduler->Drain(absl::InfiniteDuration());
  ASSERT_TRUE(listener->ended());
  EXPECT_TRUE(listener->told().end->status.ok());
  EXPECT_EQ(scheduler->Submit(Request("a", 1), listener).status().code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(BardSchedulerTest, DrainWithoutTimeCancels) {
  auto scheduler = Make();
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 20; ++i) {
    listeners.push_back(std::make_shared<Listener>(1));
    Must(scheduler->Submit(Request("To be", 200), listeners.back()));
  }
  scheduler->Drain(absl::ZeroDuration());
  size_t cancelled = 0;
  for (const auto& listener : listeners) {
    ASSERT_TRUE(listener->ended());
    cancelled += absl::IsCancelled(listener->told().end->status);
  }
  EXPECT_GT(cancelled, 0u);
}

TEST_F(BardSchedulerTest, DestructionTellsEveryEnd) {
  const auto listener = std::make_shared<Listener>(3);
  AnswerRequest request = Request("To be", 200);
  request.choices = 3;
  {
    auto scheduler = Make();
    Must(scheduler->Submit(request, listener));
  }
  EXPECT_TRUE(listener->ended());
}

TEST_F(BardSchedulerTest, TheContextIsWhatFitsIntoMemoryAlone) {
  const CacheBytes plan = model_.engine->PlanCache();
  SchedulerOptions options;
  options.memory = plan.At(128) + plan.append + plan.snapshot +
                   5 * model_.engine->info().vocab_size * sizeof(float);
  auto scheduler = Make(options);
  EXPECT_EQ(scheduler->context(), 128u);
  const auto listener = std::make_shared<Listener>(1);
  AnswerRequest request = Request("To be", 10'000);
  request.options.ignore_eos = true;
  Must(scheduler->Submit(request, listener));
  listener->Wait();
  EXPECT_EQ(listener->told().end->reason, StopReason::kContextFull);
  options.memory = 1000;
  EXPECT_THAT(Scheduler::Create(*model_.engine, *model_.tokenizer, options).status().message(),
              HasSubstr("more than the 1000 bytes"));
}

}  // namespace
}  // namespace inlay::serve
