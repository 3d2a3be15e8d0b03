// Sessions that nobody uses are removed, while a server runs.
#include "serve/sessions/session_expiry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "io/store/state_store_memory.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/must.h"
#include "tests/serve/sessions/session_maker.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr absl::Duration kTtl = absl::Hours(1);

// Tells when it was asked for a deletion, and may refuse it.
class WatchedStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<std::vector<std::string>> ListUnused(absl::string_view prefix,
                                                      absl::Duration time) override {
    if (++lists_ == 3) third_list_.set_value();
    return ForwardingStore::ListUnused(prefix, time);
  }
  absl::Status DeleteUnused(absl::string_view key, absl::Duration time) override {
    if (refused_ > 0) {
      --refused_;
      return absl::PermissionDeniedError("the folder is read-only");
    }
    return ForwardingStore::DeleteUnused(key, time);
  }

  std::promise<void> third_list_;
  std::atomic<int> lists_ = 0;
  int refused_ = 0;
};

class SessionExpiryTest : public ::testing::Test {
 protected:
  void Create(const std::string& client, const std::string& name) {
    const auto hold = Must(store_.Acquire(client, name));
    ASSERT_TRUE(store_.Create(hold, client, MakeSession(name)).ok());
  }
  std::vector<std::string> Names(const std::string& client) {
    std::vector<std::string> names;
    for (const SessionSummary& session : Must(store_.List(client))) names.push_back(session.name);
    return names;
  }
  void RemoveUnused() {
    store_.RemoveUnused([] { return false; });
  }

  absl::Time now_ = absl::UnixEpoch() + absl::Hours(7);
  const std::shared_ptr<MemoryStore> memory_ =
      std::make_shared<MemoryStore>(1 << 20, [this] { return now_; });
  const std::shared_ptr<WatchedStore> states_ = std::make_shared<WatchedStore>(memory_);
  std::vector<std::string> notes_;
  SessionStore store_{states_, {.ttl = kTtl}, [this](absl::string_view sentence) {
                        notes_.emplace_back(sentence);
                      }};
};

TEST_F(SessionExpiryTest, RemovesWhatNobodyUses) {
  Create("ann", "old");
  Create("bob", "old");
  ASSERT_TRUE(PutState(*memory_, "s.of-another-program", {1}).ok());
  ASSERT_TRUE(PutState(*memory_, "s.0123456789abcdef0123456789abcdefg-another", {1}).ok());
  now_ += kTtl - absl::Seconds(1);
  Create("ann", "new");
  RemoveUnused();
  EXPECT_THAT(Names("ann"), ElementsAre("new", "old"));
  now_ += absl::Seconds(1);
  RemoveUnused();
  EXPECT_THAT(Names("ann"), ElementsAre("new"));
  EXPECT_THAT(Names("bob"), IsEmpty());
  EXPECT_EQ(store_.Load("ann", "old").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(CountStates(*memory_, ""), 3u) << "other programs' stay";
  EXPECT_THAT(notes_, IsEmpty());
}

TEST_F(SessionExpiryTest, ReadingIsAUseAndListingIsNone) {
  for (const char* name : {"changed", "listed", "read"}) Create("ann", name);
  now_ += kTtl;
  EXPECT_THAT(Names("ann"), ElementsAre("changed", "listed", "read"));
  ASSERT_TRUE(store_.Load("ann", "read").ok());
  {
    auto hold = Must(store_.Acquire("ann", "changed"));
    const Session session = Must(store_.Load(hold, "changed"));
    now_ += kTtl / 2;
    ASSERT_TRUE(store_.Save(hold, session).ok());
  }
  RemoveUnused();
  EXPECT_THAT(Names("ann"), ElementsAre("changed", "read"));
  now_ += kTtl / 2;
  RemoveUnused();
  EXPECT_THAT(Names("ann"), ElementsAre("changed"));
}

// A turn may take longer than sessions are kept.
TEST_F(SessionExpiryTest, WhatIsHeldStays) {
  Create("ann", "talk");
  {
    auto hold = Must(store_.Acquire("ann", "talk"));
    const Session session = Must(store_.Load(hold, "talk"));
    now_ += 3 * kTtl;
    RemoveUnused();
    EXPECT_THAT(Names("ann"), ElementsAre("talk"));
    EXPECT_TRUE(store_.Save(hold, session).ok());
  }
  now_ += kTtl;
  RemoveUnused();
  EXPECT_THAT(Names("ann"), IsEmpty());
  // Nothing holds the name any more.
  Create("ann", "talk");
}

TEST_F(SessionExpiryTest, WithoutATimeSessionsStay) {
  Create("ann", "talk");
  now_ += 1000 * kTtl;
  SessionStore store(states_, {});
  store.RemoveUnused([] { return false; });
  { const SessionExpiry expiry(store, absl::ZeroDuration()); }
  EXPECT_EQ(states_->lists_, 0);
  EXPECT_THAT(Names("ann"), ElementsAre("talk"));
}

TEST_F(SessionExpiryTest, StopsWhenItIsToldTo) {
  for (const char* name : {"a", "b", "c"}) Create("ann", name);
  now_ += kTtl;
  store_.RemoveUnused([] { return true; });
  EXPECT_EQ(Names("ann").size(), 3u);
  store_.RemoveUnused([this] { return Names("ann").size() < 3; });
  EXPECT_EQ(Names("ann").size(), 2u);
}

TEST_F(SessionExpiryTest, AnErrorIsToldAndKeepsNoOtherSession) {
  for (const char* name : {"a", "b"}) Create("ann", name);
  now_ += kTtl;
  states_->refused_ = 1;
  RemoveUnused();
  EXPECT_EQ(Names("ann").size(), 1u);
  EXPECT_THAT(notes_, ElementsAre("the store of sessions: the folder is read-only"));
}

// On Redis the list is empty whether or not the server can be reached.
TEST_F(SessionExpiryTest, AnEmptyListIsNoSignOfLife) {
  class Away final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view) override {
      return absl::UnavailableError("Redis cannot be reached");
    }
  };
  SessionStore store(std::make_shared<Away>(memory_), {.ttl = kTtl},
                     [this](absl::string_view sentence) { notes_.emplace_back(sentence); });
  EXPECT_FALSE(store.Load("ann", "talk").ok());
  store.RemoveUnused([] { return false; });
  EXPECT_FALSE(store.up());
  EXPECT_THAT(notes_, ElementsAre("the store of sessions: Redis cannot be reached"));
}

TEST_F(SessionExpiryTest, RunsAtOnceAndAgain) {
  Create("ann", "talk");
  now_ += kTtl;
  {
    const SessionExpiry expiry(store_, absl::Milliseconds(1));
    EXPECT_EQ(states_->third_list_.get_future().wait_for(kLongWait), std::future_status::ready);
  }
  EXPECT_THAT(Names("ann"), IsEmpty());
}

TEST_F(SessionExpiryTest, EndsWithoutWaitingForItsTime) {
  std::optional<SessionExpiry> expiry(std::in_place, store_, absl::Hours(24 * 300));
  expiry.reset();
  EXPECT_LE(states_->lists_, 1);
}

TEST(SessionExpiryPauseTest, FollowsTheTime) {
  const auto pause = [](absl::Duration ttl) { return SessionExpiry::PauseOf({.ttl = ttl}); };
  EXPECT_EQ(pause(absl::Milliseconds(1)), absl::Seconds(1));
  EXPECT_EQ(pause(absl::Minutes(8)), absl::Minutes(1));
  EXPECT_EQ(pause(absl::Hours(24 * 30)), absl::Minutes(10));
}

}  // namespace
}  // namespace inlay::serve
