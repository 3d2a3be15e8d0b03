// Two servers of every family that leave each other states of prompts on Redis: the same bits, and
// nothing else that is shared.
#include "serve/prefixes/shared_prefixes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cache/cache_bytes.h"
#include "io/store/redis_connection.h"
#include "io/tokenizer/load_tokenizer.h"
#include "serve/scheduler/scheduler.h"
#include "tests/gemma_like/family_fixture.h"
#include "tests/io/store/redis_server.h"
#include "tests/must.h"
#include "tests/serve/scheduler/known_answers.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;

const absl::Duration kLong = absl::FromChrono(kLongWait);

class SharedPrefixesTest : public FamilyTest {
 protected:
  static constexpr size_t kContext = 400;
  static constexpr size_t kPrompts = 6;

  void SetUp() override {
    ASSERT_TRUE(redis_.started())
        << "redis-server cannot be started: install the package redis-server (scripts/setup)";
    FamilyTest::SetUp();
    tokenizer_ = Must(LoadTokenizer(*file_));
  }

  SharedPrefixesOptions Options() {
    return {.store = {.redis = {.port = redis_.port()}, .budget_bytes = uint64_t{1} << 30},
            .least_tokens = 24,
            .wait = kLong,
            .rest = absl::Milliseconds(10)};
  }

  std::shared_ptr<SharedPrefixes> Make(SharedPrefixesOptions options,
                                       const std::string& fingerprint = "same") {
    std::shared_ptr<SharedPrefixes> prefixes =
        Must(SharedPrefixes::Create(fingerprint, Must(models_[0]->Identity()), std::move(options)));
    EXPECT_TRUE(WaitUntil([&] { return prefixes->stats().up; }));
    return prefixes;
  }

  // A server of the n-th engine: they differ in their threads.
  std::unique_ptr<Scheduler> Serve(size_t engine, std::shared_ptr<SharedPrefixes> prefixes,
                                   size_t memory = size_t{64} << 20) {
    return Must(Scheduler::Create(*models_[engine], *tokenizer_,
                                  {.kv_type = GetParam().type,
                                   .context = kContext,
                                   .memory = memory,
                                   .snapshot_stride = 64,
                                   .shared_prefixes = std::move(prefixes)}));
  }

  Known MakeKnown(size_t seed, size_t length, int tokens = 12) {
    AnswerRequest request;
    std::mt19937 random(static_cast<uint32_t>(seed));
    while (request.prompt.size() < length)
      request.prompt.push_back(static_cast<int32_t>(random() % vocab_));
    request.options.sampling.temperature = 1;
    request.options.sampling.seed = length;
    request.options.max_tokens = static_cast<size_t>(tokens);
    request.options.ignore_eos = true;
    request.shared_owner = "alice";
    return Compute(*models_[0], *tokenizer_, GetParam().type, kContext, std::move(request));
  }

  // Until all that was offered is stored.
  static void WaitForStored(const SharedPrefixes& prefixes) {
    EXPECT_TRUE(WaitUntil([&] { return prefixes.stats().waiting == 0; }));
    EXPECT_GT(prefixes.stats().stored, 0u);
  }

  // How many tokens of the prompt were reused.
  size_t Answer(Scheduler& scheduler, const Known& known) {
    const auto listener = std::make_shared<Listener>(known.request.choices);
    Must(scheduler.Submit(known.request, listener));
    listener->Wait();
    for (size_t n = 0; n < known.request.choices; ++n)
      ExpectSame(listener->told(n), known.alone[n]);
    return listener->told().end->usage.cached_tokens;
  }

  RedisServer redis_;
  std::unique_ptr<Tokenizer> tokenizer_;
};

INSTANTIATE_TEST_SUITE_P(Families, SharedPrefixesTest, ::testing::ValuesIn(AllFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(SharedPrefixesTest, WhatOneHasComputedTheOtherTakes) {
  std::mt19937_64 random(Seed());
  const auto ours = Make(Options()), theirs = Make(Options());
  const auto one = Serve(0, ours), other = Serve(1, theirs);
  size_t reused = 0;
  for (size_t text = 0; text < 3; ++text) {
    const size_t length = 100 + random() % 200;
    const Known known = MakeKnown(text, length);
    const Known longer = MakeKnown(text, length + 40);
    Answer(*one, known);
    WaitForStored(*ours);
    reused += Answer(*other, longer);
    // And a third that goes on from what the second has left.
    Answer(*one, MakeKnown(text, length + 60));
  }
  EXPECT_GT(reused, 3 * 64u);
  const SchedulerStats stats = other->stats();
  EXPECT_GE(stats.shared_hits, 2u);
  EXPECT_GE(stats.cached_tokens, stats.shared_tokens);
  EXPECT_GT(stats.shared_tokens, 64u);
  EXPECT_EQ(stats.computed_tokens + stats.cached_tokens, stats.prompt_tokens);
  EXPECT_EQ(stats.shared->refused, 0u);
  EXPECT_EQ(stats.shared->late, 0u);
}

// The same prompt again: all of it but the last token.
TEST_P(SharedPrefixesTest, AWholePromptIsReused) {
  const auto ours = Make(Options());
  Known known = MakeKnown(0, 200, 4);
  {
    const auto one = Serve(0, ours);
    Answer(*one, known);
    WaitForStored(*ours);
  }
  known.request.choices = 3;
  known = Compute(*models_[0], *tokenizer_, GetParam().type, kContext, known.request);
  EXPECT_GE(Answer(*Serve(2, Make(Options())), known), 128u);
}

// Many conversations that begin alike have left longer states than what this one has of them.
TEST_P(SharedPrefixesTest, AStateIsFoundBehindManyLongerOnes) {
  const auto ours = Make(Options());
  Answer(*Serve(0, ours), MakeKnown(0, 100, 4));
  WaitForStored(*ours);
  const auto raw = Must(RedisConnection::Connect({.port = redis_.port()}, 1 << 20));
  const std::string others =
      "for _, key in ipairs(redis.call('KEYS', 'inlay:{prefixes}:r.*')) do "
      "for length = 105, 380 do redis.call('SADD', key, length) end end return 1";
  ASSERT_TRUE(raw->Command({"EVAL", others, "0"}).ok());
  EXPECT_GE(Answer(*Serve(1, Make(Options())), MakeKnown(0, 380, 4)), 64u);
}

// Other owners, other kinds of servers, requests that are not to be shared, and prompts that are
// scored or short.
TEST_P(SharedPrefixesTest, OthersComputeTheirs) {
  const auto ours = Make(Options());
  const Known known = MakeKnown(0, 200, 4);
  Answer(*Serve(0, ours), known);
  WaitForStored(*ours);
  const auto other = Serve(1, Make(Options()));
  Known changed = known;
  changed.request.shared_owner = "bob";
  EXPECT_EQ(Answer(*other, changed), 0u);
  EXPECT_EQ(Answer(*Serve(1, Make(Options(), "another")), known), 0u);
  changed = known;
  changed.request.shared_owner = std::nullopt;
  EXPECT_EQ(Answer(*Serve(1, Make(Options())), changed), 0u);
  changed = known;
  changed.request.options.score_from = 100;
  changed.request.options.top_chances = 0;
  changed =
      Compute(*models_[0], *tokenizer_, GetParam().type, kContext, std::move(changed.request));
  EXPECT_EQ(Answer(*Serve(1, Make(Options())), changed), 0u);
  EXPECT_EQ(Answer(*Serve(1, Make(Options())), MakeKnown(0, 24)), 0u);
  EXPECT_GT(Answer(*Serve(1, Make(Options())), known), 0u) << "the same one does";
}

// What a server finds may be damaged, or not what the name says: it is removed, and made anew.
TEST_P(SharedPrefixesTest, DamagedAndForeignStatesAreRefused) {
  const auto raw = Must(RedisConnection::Connect({.port = redis_.port()}, 1 << 20));
  const Known known = MakeKnown(0, 130, 4), foreign = MakeKnown(1, 130, 4);
  std::mt19937_64 random(Seed());
  for (const std::string& damage :
       {std::string("redis.call('SETRANGE', key, math.floor(#value / 2), 'damaged')"),
        std::string("redis.call('SETRANGE', key, 100 + math.floor((#value - 200) * ") +
            absl::StrCat(static_cast<double>(random() % 1000) / 1000) + "), 'xy')",
        std::string("redis.call('SET', key, string.sub(value, 1, #value / 2))"),
        std::string("redis.call('SET', key, value .. value)"),
        std::string("redis.call('SET', key, 'x')"), std::string("redis.call('SET', key, other)")}) {
    ASSERT_TRUE(raw->Command({"FLUSHALL"}).ok());
    const auto ours = Make(Options()), others = Make(Options());
    Answer(*Serve(0, others), foreign);
    WaitForStored(*others);
    const std::string keep =
        "for _, key in ipairs(redis.call('KEYS', 'inlay:{prefixes}:s.*')) do "
        "redis.call('SET', 'kept', redis.call('GET', key)) end return 1";
    ASSERT_TRUE(raw->Command({"EVAL", keep, "0"}).ok());
    Answer(*Serve(0, ours), known);
    WaitForStored(*ours);
    // All that are stored now: none of them is right.
    const std::string script =
        absl::StrCat("local other = redis.call('GET', 'kept') ",
                     "for _, key in ipairs(redis.call('KEYS', 'inlay:{prefixes}:s.*')) do ",
                     "local value = redis.call('GET', key) ", damage, " end return 1");
    ASSERT_TRUE(raw->Command({"EVAL", script, "0"}).ok());
    const auto theirs = Make(Options());
    const auto other = Serve(1, theirs);
    // Of the one kind of bytes that no checksum covers none is there; see cache/serialize.h.
    EXPECT_EQ(Answer(*other, known), 0u) << damage;
    EXPECT_GE(theirs->stats().refused, 1u) << damage;
    EXPECT_EQ(other->stats().shared_hits, 0u);
    WaitForStored(*theirs);
    EXPECT_GT(Answer(*Serve(2, Make(Options())), known), 0u) << damage;
  }
}

// Memory for little more than one conversation: what was fetched gives way to what runs.
TEST_P(SharedPrefixesTest, MemoryIsKeptTo) {
  const auto ours = Make(Options());
  const auto one = Serve(0, ours);
  const CacheBytes plan = models_[0]->PlanCache(GetParam().type);
  const size_t memory =
      (plan.At(kContext) + plan.append + plan.snapshot) * 5 / 4 + 5 * vocab_ * sizeof(float);
  const auto other = Serve(1, Make(Options()), memory);
  std::vector<Known> all;
  for (size_t text = 0; text < 4; ++text) {
    all.push_back(MakeKnown(text, 250, 20));
    Answer(*one, all.back());
  }
  WaitForStored(*ours);
  std::vector<std::shared_ptr<Listener>> listeners;
  for (const Known& known : all) {
    listeners.push_back(std::make_shared<Listener>(1));
    Must(other->Submit(known.request, listeners.back()));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    listeners[i]->Wait();
    ExpectSame(listeners[i]->told(), all[i].alone[0]);
  }
  EXPECT_LE(other->stats().used_bytes, memory);
  EXPECT_EQ(other->stats().failed, 0u);
}

// Of one family: what follows does not depend on the model.
class SharedPrefixesStoreTest : public SharedPrefixesTest {};

INSTANTIATE_TEST_SUITE_P(Families, SharedPrefixesStoreTest,
                         ::testing::Values(AllFamilies().front()),
                         [](const auto& info) { return info.param.name; });

// Long conversations are not written again with every snapshot.
TEST_P(SharedPrefixesStoreTest, OnlyWhatIsLongerByAQuarterIsStored) {
  auto options = Options();
  options.least_tokens = 32;
  const auto ours = Make(std::move(options));
  const auto one = Serve(0, ours);
  auto wait = [&, stored = uint64_t{0}](uint64_t more) mutable {
    stored += more;
    WaitForStored(*ours);
    EXPECT_EQ(ours->stats().stored, stored);
  };
  Answer(*one, MakeKnown(0, 300, 0));
  wait(4);  // of 64, 128, 192 and 256 tokens; not of 300
  Answer(*one, MakeKnown(0, 330, 0));
  wait(0);
  Answer(*one, MakeKnown(0, 350, 0));
  wait(1);
  Answer(*one, MakeKnown(0, 360, 10));
  Answer(*one, MakeKnown(0, 350, 0));
  wait(0);
  Answer(*one, MakeKnown(0, 31, 0));
  wait(0);
}

// The end of a server waits until its latest conversations are stored; one that is not drained
// leaves what it has left before.
TEST_P(SharedPrefixesStoreTest, ADrainedServerLeavesWhatItHas) {
  auto options = Options();
  options.least_tokens = 32;
  for (const bool drained : {false, true}) {
    const Known known = MakeKnown(drained ? 1 : 0, 300, 0);
    const auto ours = Make(options);
    auto one = Serve(0, ours);
    Answer(*one, known);
    WaitForStored(*ours);
    const uint64_t before = ours->stats().stored;
    if (drained) one->Drain(kLong);
    one = nullptr;
    EXPECT_EQ(ours->stats().waiting, 0u);
    EXPECT_EQ(ours->stats().stored > before, drained);
    const size_t reused = Answer(*Serve(1, Make(options)), known);
    EXPECT_GE(reused, 256u);
    EXPECT_EQ(reused > 256, drained);
  }
}

// At most half of the budget is stored at the end: more would evict the latest conversations, which
// are stored first.
TEST_P(SharedPrefixesStoreTest, ADrainedServerEvictsNothingOfItsOwn) {
  constexpr size_t kLength = 330;  // too close to 256 to be stored before the end
  auto options = Options();
  options.least_tokens = kLength - 10;
  uint64_t bytes = 0;  // of one state
  {
    const auto ours = Make(options);
    const auto one = Serve(0, ours);
    Answer(*one, MakeKnown(0, kLength, 0));
    WaitForStored(*ours);
    bytes = ours->stats().stored_bytes;
  }
  options.least_tokens = 32;
  options.store.budget_bytes = bytes * 9;
  const auto ours = Make(options);
  auto one = Serve(0, ours);
  std::vector<Known> all;
  for (size_t text = 0; text < 12; ++text) all.push_back(MakeKnown(text, kLength, 0));
  for (const Known& known : all) {
    Answer(*one, known);
    WaitForStored(*ours);
  }
  one->Drain(kLong);
  one = nullptr;
  EXPECT_GT(Answer(*Serve(1, Make(options)), all.back()), 256u);
}

TEST_P(SharedPrefixesStoreTest, ExpiredStatesAreComputedAgain) {
  auto options = Options();
  options.store.expiry = absl::Milliseconds(200);
  const auto ours = Make(options);
  const Known known = MakeKnown(0, 200, 4);
  const auto one = Serve(0, ours);
  Answer(*one, known);
  WaitForStored(*ours);
  absl::SleepFor(absl::Milliseconds(300));
  EXPECT_EQ(Answer(*Serve(1, Make(options)), known), 0u);
}

TEST_P(SharedPrefixesStoreTest, StatesBeyondTheBudgetAreNotStored) {
  auto options = Options();
  options.store.budget_bytes = 1 << 20;
  const auto ours = Make(options);
  const auto one = Serve(0, ours);
  const auto raw = Must(RedisConnection::Connect({.port = redis_.port()}, 1 << 20));
  for (size_t text = 0; text < kPrompts; ++text) Answer(*one, MakeKnown(text, 390, 0));
  const auto there = [&] {
    return Must(raw->Command({"EVAL",
                              "local sum = 0 for _, key in ipairs(redis.call('KEYS', "
                              "'inlay:{prefixes}:s.*')) do sum = sum + redis.call('STRLEN', key) "
                              "end return sum",
                              "0"}))
        .integer;
  };
  EXPECT_LE(there(), 1 << 20);
  WaitForStored(*ours);
  EXPECT_LE(there(), 1 << 20);
}

// What counts is the size of what would be stored, at most a quarter of the budget, not that of the
// conversation, which has more.
TEST_P(SharedPrefixesStoreTest, AStateIsAsLargeAsItIsStored) {
  const Known known = MakeKnown(0, 300, 0);
  const auto cache = Must(models_[0]->CreateCache({.max_length = kContext}));
  std::vector<float> logits(vocab_);
  const SequenceStep step{.cache = cache.get(), .tokens = known.request.prompt};
  ASSERT_TRUE(models_[0]->Forward({&step, 1}, FloatRows(logits.data(), 1, vocab_)).ok());
  const auto trimmed = Must(cache->Fork());
  ASSERT_TRUE(trimmed->Trim(1).ok());
  ASSERT_LT(trimmed->allocated_bytes(), cache->allocated_bytes());
  for (const bool fits : {false, true}) {
    auto options = Options();
    options.store.budget_bytes = 4 * (trimmed->allocated_bytes() - (fits ? 0 : 1));
    const auto ours = Make(options);
    ours->OfferLast("alice", *cache);
    ours->Finish(kLong);
    EXPECT_EQ(ours->stats().stored, fits ? 1 : 0);
  }
}

// A server that dies: what runs ends as it should, what comes is computed, one sentence says why,
// and when it is back states are shared again.
TEST_P(SharedPrefixesStoreTest, RedisDiesAndComesBack) {
  auto redis = std::make_unique<RedisServer>();
  ASSERT_TRUE(redis->started());
  const uint16_t port = redis->port();
  std::mutex mutex;
  std::vector<std::string> notes;
  auto options = Options();
  options.store.redis.port = redis->port();
  options.note = [&](absl::string_view note) {
    // Those who write may notice it before those who read.
    if (absl::StrContains(note, "not stored for now")) return;
    const std::lock_guard lock(mutex);
    notes.emplace_back(note);
  };
  const auto noted = [&] {
    const std::lock_guard lock(mutex);
    return notes.size();
  };
  const auto ours = Make(std::move(options));
  const auto one = Serve(0, ours);
  const auto begin = [&](const Known& known) {
    auto listener = std::make_shared<Listener>(1);
    Must(one->Submit(known.request, listener));
    return listener;
  };
  std::vector<Known> all;
  for (size_t text = 0; text < kPrompts; ++text) all.push_back(MakeKnown(text, 300, 10));
  std::vector<std::shared_ptr<Listener>> listeners;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i == 3) redis->Kill();
    listeners.push_back(begin(all[i]));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    listeners[i]->Wait();
    ExpectSame(listeners[i]->told(), all[i].alone[0]);
  }
  EXPECT_TRUE(WaitUntil([&] { return noted() > 0; }));
  for (const Known& known : all) Answer(*one, known);
  EXPECT_EQ(noted(), 1u) << "not for every request";
  EXPECT_THAT(notes[0], HasSubstr(absl::StrCat("127.0.0.1:", port)));
  EXPECT_FALSE(one->stats().shared->up);
  redis = std::make_unique<RedisServer>(std::vector<std::string>{}, port);
  ASSERT_TRUE(redis->started());
  const uint64_t before = ours->stats().stored;
  size_t asked = 0;
  EXPECT_TRUE(WaitUntil([&] {
    Answer(*one, MakeKnown(asked % kPrompts, 200 + asked % 150, 0));
    ++asked;
    return ours->stats().stored > before;
  }));
  EXPECT_TRUE(WaitUntil([&] {
    Answer(*one, MakeKnown(0, 150, 0));
    return noted() == 2;
  }));
}

// A server that hangs costs a request its wait at most, once; later ones nothing.
TEST_P(SharedPrefixesStoreTest, RedisHangs) {
  auto options = Options();
  options.store.redis.timeout = absl::Seconds(3);  // long enough to connect on a busy machine
  options.wait = absl::Milliseconds(100);
  options.rest = absl::Hours(1);
  const auto ours = Make(options);
  const auto one = Serve(0, ours);
  redis_.Signal(SIGSTOP);
  const Known known = MakeKnown(0, 200, 4);
  Answer(*one, known);
  EXPECT_TRUE(WaitUntil([&] { return !ours->stats().up; }));
  for (size_t text = 1; text < kPrompts; ++text) {
    const Known next = MakeKnown(text, 200, 4);
    Answer(*one, next);
    const SchedulerStats stats = one->stats();
    EXPECT_LE(stats.shared->late, 1u);
  }
  redis_.Signal(SIGCONT);
}

// Many requests at a time, while states come and go.
TEST_P(SharedPrefixesStoreTest, ManyAtATime) {
  auto options = Options();
  options.store.budget_bytes = 8 << 20;
  const auto one = Serve(0, Make(options)), other = Serve(1, Make(options));
  std::vector<Known> all;
  for (size_t i = 0; i < 12; ++i) all.push_back(MakeKnown(i % kPrompts, 100 + 20 * i, 6));
  std::vector<std::pair<const Known*, std::shared_ptr<Listener>>> sent;
  std::mt19937_64 random(Seed());
  for (int i = 0; i < 100; ++i) {
    const Known& known = all[random() % all.size()];
    sent.emplace_back(&known, std::make_shared<Listener>(1));
    Scheduler& server = random() % 2 == 0 ? *one : *other;
    const uint64_t id = Must(server.Submit(known.request, sent.back().second));
    if (random() % 10 == 0) {
      server.Cancel(id);
      sent.back().first = nullptr;
    }
  }
  for (const auto& [known, listener] : sent) {
    listener->Wait();
    if (known != nullptr) ExpectSame(listener->told(), known->alone[0]);
  }
}

// The end waits for the store no longer than a request does, and tells every request its end.
TEST_P(SharedPrefixesStoreTest, EndsWhileRequestsWaitForIt) {
  auto options = Options();
  // All are asked within this time, which the end takes, too.
  options.store.redis.timeout = options.wait = absl::Seconds(3);
  auto one = Serve(0, Make(options));
  std::vector<Known> all;
  for (size_t text = 0; text < kPrompts; ++text) all.push_back(MakeKnown(text, 200, 4));
  redis_.Signal(SIGSTOP);
  std::vector<std::shared_ptr<Listener>> listeners;
  for (const Known& known : all) {
    listeners.push_back(std::make_shared<Listener>(1));
    Must(one->Submit(known.request, listeners.back()));
  }
  one = nullptr;
  for (const auto& listener : listeners) {
    listener->Wait();
    EXPECT_TRUE(absl::IsCancelled(listener->told().end->status));
  }
  redis_.Signal(SIGCONT);
}

}  // namespace
}  // namespace inlay::serve
