// The scheduler with the demo model: what listeners are told, memory, prefixes, limits and the end.
// More than 600 lines, as all of it is one class seen by one fixture.
#include "serve/scheduler/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/steady_time.h"
#include "cache/cache_bytes.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "serve/scheduler/batcher.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/repetitions.h"
#include "tests/serve/scheduler/known_answers.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Lt;

// Finds no memory once, for one of the things that it is told.
class ForgetfulListener final : public AnswerListener {
 public:
  enum class At { kNever, kStart, kUpdate, kEnd };

  void OnStart(const AnswerUsage&) override { FailIf(At::kStart); }
  bool OnUpdate(const AnswerUpdate&) override {
    FailIf(At::kUpdate);
    return true;
  }
  void OnEnd(const AnswerEnd& end) override {
    ends.push_back(end.status);
    FailIf(At::kEnd);
  }

  At at = At::kNever;
  std::vector<absl::Status> ends;

 private:
  void FailIf(At now) {
    if (at != now) return;
    at = At::kNever;
    throw std::bad_alloc();
  }
};

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
      Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 256, request).alone[0].text;
  ASSERT_GT(whole.size(), 20u);
  request.options.stop_texts = {"none", whole.substr(12, 4)};
  request.options.top_chances = 3;
  const Known known = Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 256, request);
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
  const Known known = Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 256, request);
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
  const Known known = Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 128, request);
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
  for (size_t i = 0; i < (kSanitized ? 8 : 16); ++i) {
    AnswerRequest request = Request(i % 2 == 0 ? "ROMEO:\n" : "To be, or not to be, that is", 60);
    if (i % 3 == 0) request.options.max_tokens = std::numeric_limits<size_t>::max();
    request.options.sampling.temperature = 1.2f;
    request.options.sampling.seed = i;
    request.options.grammar = shapes[i % shapes.size()];
    request.choices = 1 + i % 3 / 2;
    requests.push_back(Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 160, request));
  }
  const CacheBytes plan = model_.engine->PlanCache(kDefaultKvType);
  const size_t vocab_size = model_.engine->info().vocab_size;
  uint64_t pauses = 0;
  for (int run = 0; run < (kSanitized ? 1 : 6); ++run) {
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
      ticket->arrived = SteadyNow();
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

// A client that has its answer finds it counted, however soon it asks.
TEST_F(BardSchedulerTest, AnAnswerIsCountedBeforeItsEndIsTold) {
  struct Reader final : AnswerListener {
    void OnStart(const AnswerUsage&) override {}
    bool OnUpdate(const AnswerUpdate&) override { return true; }
    void OnEnd(const AnswerEnd&) override { at_end.set_value(scheduler->stats()); }
    Scheduler* scheduler;
    std::promise<SchedulerStats> at_end;
  };
  auto scheduler = Make();
  const auto reader = std::make_shared<Reader>();
  reader->scheduler = scheduler.get();
  Must(scheduler->Submit(Request("ROMEO:\n", 5), reader));
  const SchedulerStats stats = reader->at_end.get_future().get();
  EXPECT_EQ(stats.requests, 1u);
  EXPECT_EQ(stats.answers, 1u);
  EXPECT_EQ(stats.running, 0u);
}

TEST_F(BardSchedulerTest, WhereAListenerHasEnoughDoesNotDependOnDrafts) {
  uint64_t accepted = 0;
  const auto answer = [&](size_t draft, size_t enough, std::optional<size_t> top_chances,
                          size_t max_tokens = 30) {
    // The model drafts for itself, so that a step has several tokens, and as if that cost little.
    SchedulerOptions options{
        .context = 256, .draft = draft, .draft_costs = DraftCosts{.pass = 0.01, .row = 0.01}};
    if (draft > 0) options.draft_model = model_.engine.get();
    auto scheduler = Must(Scheduler::Create(*model_.engine, *model_.tokenizer, options));
    const auto listener = std::make_shared<Listener>(1, enough);
    AnswerRequest request = Request("ROMEO:\n", max_tokens);
    request.options.top_chances = top_chances;
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    EXPECT_TRUE(listener->told().end->status.ok());
    accepted += scheduler->stats().accepted_tokens;
    EXPECT_EQ(scheduler->stats().memory_bytes, options.memory) << "with the draft model's share";
    return listener->told();
  };
  for (const std::optional<size_t> top_chances :
       {std::optional<size_t>(), std::optional<size_t>(1)}) {
    for (const size_t enough : {1, 9, 20, 33, 1000}) {
      SCOPED_TRACE(enough);
      const Told plain = answer(0, enough, top_chances), drafted = answer(4, enough, top_chances);
      EXPECT_EQ(drafted.text, plain.text);
      EXPECT_EQ(drafted.chosen, plain.chosen);
      EXPECT_EQ(drafted.end->tokens, plain.end->tokens);
      EXPECT_EQ(drafted.end->usage.completion_tokens, plain.end->usage.completion_tokens);
      EXPECT_EQ(plain.end->tokens.size(), plain.end->usage.completion_tokens);
    }
  }
  EXPECT_GT(accepted, 0u);
  // Nor does the reason, where the step went on to the answer's own end.
  for (size_t max_tokens = 6; max_tokens < 16; ++max_tokens) {
    const Told told = answer(4, 9, std::nullopt, max_tokens);
    ASSERT_GE(told.text.size(), 9u);
    EXPECT_EQ(told.end->reason, StopReason::kCancelled) << max_tokens;
  }
}

TEST_F(BardSchedulerTest, PrefixesAreTheOwnersAlone) {
  auto scheduler = Make({.snapshot_stride = 8});
  const auto cached = [&](int32_t owner, absl::string_view text) {
    AnswerRequest request = Request(text, 1);
    request.prefix_owner = owner;
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

// An agent's prompts grow before a tail that is written anew for each. The second shows where, so
// that the third begins before its own, and so on.
TEST_F(BardSchedulerTest, TailsThatAreWrittenAnewAreForeseen) {
  auto scheduler = Make({.snapshot_stride = 0, .draft = 0});
  std::mt19937 random(1);
  const auto add = [&](std::vector<int32_t>& tokens, size_t count) {
    for (; count > 0; --count) tokens.push_back(10 + static_cast<int32_t>(random() % 200));
  };
  std::vector<int32_t> history;
  add(history, 40);
  std::vector<size_t> cached, shared;
  for (int turn = 0; turn < 4; ++turn) {
    shared.push_back(history.size());
    add(history, 36);
    AnswerRequest request;
    request.prompt = history;
    add(request.prompt, 40);
    request.options.max_tokens = 1;
    const auto listener = std::make_shared<Listener>(1);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    EXPECT_TRUE(listener->told().end->status.ok());
    cached.push_back(listener->usage().cached_tokens);
  }
  EXPECT_THAT(cached, ElementsAre(0, Lt(shared[1]), shared[2], shared[3]));
}

// The place before a tail is a little too early where the tail is shorter than the one before: the
// next prompt goes on from there all the same, and shows the new length.
TEST_F(BardSchedulerTest, TailsThatBecomeShorterAreForeseen) {
  auto scheduler = Make({.snapshot_stride = 0, .draft = 0});
  std::mt19937 random(1);
  std::vector<int32_t> history;
  const auto go_on = [&](size_t count) {
    for (; count > 0; --count) history.push_back(10 + static_cast<int32_t>(random() % 200));
  };
  std::vector<size_t> cached, shared;
  int32_t own = 300;  // tokens of tails, each of which is there once
  for (const size_t tail : {40, 40, 30, 30, 30}) {
    shared.push_back(history.size());
    go_on(44);
    AnswerRequest request;
    request.prompt = history;
    for (size_t i = 0; i < tail; ++i) request.prompt.push_back(own++);
    request.options.max_tokens = 1;
    const auto listener = std::make_shared<Listener>(1);
    Must(scheduler->Submit(request, listener));
    listener->Wait();
    EXPECT_TRUE(listener->told().end->status.ok());
    cached.push_back(listener->usage().cached_tokens);
  }
  EXPECT_THAT(cached, ElementsAre(0, Lt(shared[1]), shared[2], shared[3] - 10, shared[4]));
}

// Prompts that share instructions alone have no such tail, and leave no snapshot before one.
TEST_F(BardSchedulerTest, PromptsThatShareInstructionsLeaveNoMoreSnapshots) {
  auto batcher = Must(Batcher::Create(*model_.engine, *model_.tokenizer,
                                      {.context = 256, .snapshot_stride = 0, .draft = 0}));
  std::vector<uint64_t> snapshots;
  for (const size_t own : {40, 90, 92, 98}) {
    auto ticket = std::make_shared<Ticket>();
    for (int32_t i = 0; i < 100; ++i) ticket->request.prompt.push_back(10 + i);
    for (size_t i = 0; i < own; ++i) {
      ticket->request.prompt.push_back(static_cast<int32_t>(200 + 100 * snapshots.size() + i));
    }
    ticket->request.options.max_tokens = 1;
    ticket->listener = std::make_shared<Listener>(1);
    ticket->arrived = SteadyNow();
    batcher->Add(ticket);
    while (!batcher->idle()) batcher->Step();
    snapshots.push_back(batcher->stats().snapshots);
  }
  EXPECT_EQ(snapshots[1] - snapshots[0], snapshots[0] + 2) << "where they part, and before a tail";
  EXPECT_EQ(snapshots[2] - snapshots[1], snapshots[0]);
  EXPECT_EQ(snapshots[3] - snapshots[2], snapshots[0]);
}

// A step is that of all answers: what one of them finds no memory for, when it is told what came of
// the step, must not keep another one from its share.
TEST_F(BardSchedulerTest, WhatFindsNoMemoryEndsItsOwnAnswerAlone) {
  AnswerRequest request;
  for (int32_t i = 0; i < 40; ++i) request.prompt.push_back(10 + i);
  request.options.max_tokens = 8;
  request.options.top_chances = 1;
  const Known known = Compute(*model_.engine, *model_.tokenizer, kDefaultKvType, 256, request);
  using At = ForgetfulListener::At;
  for (const At at : {At::kUpdate, At::kEnd}) {
    auto batcher = Must(Batcher::Create(*model_.engine, *model_.tokenizer,
                                        {.context = 256, .snapshot_stride = 16, .draft = 0}));
    const auto add = [&](const AnswerRequest& added, std::shared_ptr<AnswerListener> listener) {
      auto ticket = std::make_shared<Ticket>();
      ticket->request = added;
      ticket->listener = std::move(listener);
      ticket->arrived = SteadyNow();
      batcher->Add(ticket);
    };
    const auto forgetful = std::make_shared<ForgetfulListener>();
    AnswerRequest first = Request("ROMEO:", 2);
    first.options.top_chances = 1;
    first.options.ignore_eos = true;
    add(first, forgetful);
    batcher->Step();
    ASSERT_TRUE(forgetful->ends.empty());
    forgetful->at = at;
    const auto listener = std::make_shared<Listener>(1);
    add(request, listener);  // its prompt takes three steps
    while (!batcher->idle()) batcher->Step();
    ASSERT_EQ(forgetful->ends.size(), 1u);
    EXPECT_EQ(forgetful->ends[0].ok(), at == At::kEnd);
    EXPECT_EQ(absl::IsResourceExhausted(forgetful->ends[0]), at == At::kUpdate);
    ExpectSame(listener->told(), known.alone[0]);
    EXPECT_EQ(batcher->stats().reserved_bytes, 0u);
  }
}

TEST_F(BardSchedulerTest, ChoicesEndWithTheFirstOneUntilTheyAreQueued) {
  using At = ForgetfulListener::At;
  for (const At at : {At::kStart, At::kUpdate}) {
    auto batcher =
        Must(Batcher::Create(*model_.engine, *model_.tokenizer, {.context = 256, .draft = 0}));
    const auto forgetful = std::make_shared<ForgetfulListener>();
    forgetful->at = at;
    auto ticket = std::make_shared<Ticket>();
    ticket->request = Request("ROMEO:", 4);
    ticket->request.options.top_chances = 1;
    ticket->request.choices = 3;
    ticket->listener = forgetful;
    ticket->arrived = SteadyNow();
    batcher->Add(ticket);
    while (!batcher->idle()) batcher->Step();
    EXPECT_EQ(forgetful->ends.size(), 3u);
    for (const absl::Status& end : forgetful->ends) EXPECT_TRUE(absl::IsResourceExhausted(end));
  }
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
  EXPECT_THAT(refused(request).message(), HasSubstr("token id 100000 at index"));
  request.prompt = {-1};
  EXPECT_THAT(refused(request).message(), HasSubstr("token id -1 at index"));
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
  request.deadline = SteadyNow() - absl::Seconds(1);
  request.choices = 2;
  const auto listener = std::make_shared<Listener>(2);
  Must(scheduler->Submit(request, listener));
  listener->Wait();
  for (size_t n : {0, 1}) {
    EXPECT_EQ(listener->told(n).end->status.code(), absl::StatusCode::kDeadlineExceeded);
  }
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

// A listener must not wait. The server's end is not to depend on that.
TEST_F(BardSchedulerTest, DrainDoesNotWaitForEverForAListener) {
  class StuckListener final : public AnswerListener {
   public:
    explicit StuckListener(std::future<void> end) : end_(std::move(end)) {}
    void OnStart(const AnswerUsage&) override {
      begun.set_value();
      end_.wait();
    }
    bool OnUpdate(const AnswerUpdate&) override { return true; }
    void OnEnd(const AnswerEnd&) override { ended = true; }

    std::promise<void> begun;
    std::atomic<bool> ended = false;

   private:
    const std::future<void> end_;
  };
  auto scheduler = Make({.time_to_cancel = absl::Milliseconds(1)});
  std::promise<void> end;
  const auto listener = std::make_shared<StuckListener>(end.get_future());
  Must(scheduler->Submit(Request("ROMEO:", 4), listener));
  listener->begun.get_future().wait();
  const std::future<void> drained =
      std::async(std::launch::async, [&] { scheduler->Drain(absl::ZeroDuration()); });
  EXPECT_EQ(drained.wait_for(kLongWait), std::future_status::ready);
  EXPECT_FALSE(listener->ended);
  end.set_value();
}

// Not as what a client has cancelled: whoever still waits may ask another server.
TEST_F(BardSchedulerTest, DrainWithoutTimeEndsAnswersAsUnavailable) {
  auto scheduler = Make();
  std::vector<std::shared_ptr<Listener>> listeners;
  for (int i = 0; i < 20; ++i) {
    listeners.push_back(std::make_shared<Listener>(1));
    Must(scheduler->Submit(Request("To be", 200), listeners.back()));
  }
  scheduler->Drain(absl::ZeroDuration());
  size_t unavailable = 0;
  for (const auto& listener : listeners) {
    ASSERT_TRUE(listener->ended());
    EXPECT_FALSE(absl::IsCancelled(listener->told().end->status));
    unavailable += absl::IsUnavailable(listener->told().end->status);
  }
  EXPECT_GT(unavailable, 0u);
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
