// Sessions in a store: whole, apart by client, within limits.
#include "serve/sessions/session_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/xxh64.h"
#include "io/store/state_store_file.h"
#include "io/store/state_store_memory.h"
#include "serve/sessions/session_json.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/must.h"
#include "tests/serve/sessions/session_maker.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

using ::testing::HasSubstr;
using Kind = SessionTurn::Kind;

class SessionStoreTest : public ::testing::Test {
 protected:
  absl::Status Create(absl::string_view client, const std::string& name) {
    auto hold = store_.Acquire(client, name);
    return hold.ok() ? store_.Create(*hold, client, MakeSession(name)) : hold.status();
  }
  std::vector<std::string> Names(absl::string_view client) {
    std::vector<std::string> names;
    for (const SessionSummary& session : Must(store_.List(client))) names.push_back(session.name);
    return names;
  }

  const std::shared_ptr<MemoryStore> states_ = std::make_shared<MemoryStore>();
  SessionStore store_{states_, {.most_sessions = 3, .most_bytes = 20'000}};
};

TEST_F(SessionStoreTest, KeepsSessions) {
  ASSERT_TRUE(Create("ann", "talk").ok());
  Session session = Must(store_.Load("ann", "talk"));
  AddTurn(session, Kind::kAnswer, 0, {1, 2}, {3});
  {
    auto hold = Must(store_.Acquire("ann", "talk"));
    ASSERT_TRUE(store_.Load(hold, "talk").ok());
    ASSERT_TRUE(store_.Save(hold, session).ok());
  }
  EXPECT_EQ(SessionDocument(Must(store_.Load("ann", "talk"))), SessionDocument(session));
  const std::vector<SessionSummary> list = Must(store_.List("ann"));
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].name, "talk");
  EXPECT_EQ(list[0].version, 1u);
  EXPECT_EQ(list[0].length, 3u);
  EXPECT_EQ(list[0].created, 100);
  EXPECT_EQ(list[0].updated, 200);
  EXPECT_GT(list[0].bytes, 500u);
  {
    const auto hold = Must(store_.Acquire("ann", "talk"));
    ASSERT_TRUE(store_.Delete(hold, "talk").ok());
    EXPECT_EQ(store_.Delete(hold, "talk").code(), absl::StatusCode::kNotFound);
  }
  const absl::Status gone = store_.Load("ann", "talk").status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("no session talk"));
}

TEST_F(SessionStoreTest, ClientsAreApart) {
  ASSERT_TRUE(Create("ann", "talk").ok());
  ASSERT_TRUE(Create("ann", "other").ok());
  EXPECT_EQ(store_.Load("bob", "talk").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(Create("bob", "talk").ok());
  ASSERT_TRUE(Create("", "talk").ok());
  EXPECT_EQ(Names("ann"), (std::vector<std::string>{"other", "talk"}));
  EXPECT_EQ(Names("bob"), (std::vector<std::string>{"talk"}));
  EXPECT_EQ(store_.KnownCount(), 4u);
  // Each holds its own.
  const auto hold = Must(store_.Acquire("ann", "talk"));
  EXPECT_TRUE(store_.Acquire("bob", "talk").ok());
}

TEST_F(SessionStoreTest, OneHoldsASession) {
  std::optional<SessionStore::Hold> hold = Must(store_.Acquire("ann", "talk"));
  EXPECT_EQ(store_.Acquire("ann", "talk").status().code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(store_.Acquire("ann", "other").ok());
  EXPECT_EQ(store_.held(), 1u);
  SessionStore::Hold moved = *std::move(hold);
  hold.reset();
  EXPECT_FALSE(store_.Acquire("ann", "talk").ok());
  { const SessionStore::Hold last = std::move(moved); }
  EXPECT_EQ(store_.held(), 0u);
  EXPECT_TRUE(store_.Acquire("ann", "talk").ok());
}

// Two servers with one store: the second one's change of what the first has changed is refused.
TEST_F(SessionStoreTest, AnotherServerChangesASession) {
  SessionStore other(states_, {});
  ASSERT_TRUE(Create("ann", "talk").ok());
  auto ours = Must(store_.Acquire("ann", "talk"));
  Session session = Must(store_.Load(ours, "talk"));
  AddTurn(session, Kind::kAnswer, 0, {1}, {2});
  {
    auto theirs = Must(other.Acquire("ann", "talk"));
    Session changed = Must(other.Load(theirs, "talk"));
    AddTurn(changed, Kind::kAnswer, 0, {3}, {4});
    ASSERT_TRUE(other.Save(theirs, changed).ok());
  }
  const absl::Status late = store_.Save(ours, session);
  EXPECT_EQ(late.code(), absl::StatusCode::kAborted);
  EXPECT_THAT(std::string(late.message()), HasSubstr("talk was changed or deleted by another"));
  EXPECT_EQ(Must(store_.Load("ann", "talk")).Tokens(), (std::vector<int32_t>{3, 4}));
  // Whoever loads it again may change it.
  EXPECT_TRUE(store_.Save(ours, Must(store_.Load(ours, "talk"))).ok());
  // What was deleted meanwhile does not come back, also when another of the name was made.
  session = Must(store_.Load(ours, "talk"));
  for (const bool made_again : {false, true}) {
    auto theirs = Must(other.Acquire("ann", "talk"));
    if (made_again) {
      ASSERT_TRUE(other.Create(theirs, "ann", MakeSession("talk")).ok());
    } else {
      ASSERT_TRUE(other.Delete(theirs, "talk").ok());
    }
    EXPECT_EQ(store_.Save(ours, session).code(), absl::StatusCode::kAborted) << made_again;
  }
  EXPECT_EQ(Must(store_.Load("ann", "talk")).length(), 0u);
}

// Two servers make a session of one name at the same time.
TEST_F(SessionStoreTest, AnotherServerMakesTheSession) {
  // Shows no session, as it was listed before the other server has made it.
  class LateStore final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::vector<std::string>> List(absl::string_view) override {
      return std::vector<std::string>();
    }
    absl::StatusOr<size_t> Count(absl::string_view) override { return 0; }
  };
  SessionStore late(std::make_shared<LateStore>(states_), {});
  ASSERT_TRUE(Create("ann", "talk").ok());
  const auto hold = Must(late.Acquire("ann", "talk"));
  EXPECT_EQ(late.Create(hold, "ann", MakeSession("talk")).code(), absl::StatusCode::kAlreadyExists);
}

// A state that is replaced while it is read is read again.
TEST_F(SessionStoreTest, ReadsAgainWhatWasReplaced) {
  class Unsteady final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
      if (times_-- > 0) return StateWasReplaced(key);
      return ForwardingStore::Get(key);
    }
    int times_ = 0;
  };
  const auto unsteady = std::make_shared<Unsteady>(states_);
  SessionStore store(unsteady, {});
  ASSERT_TRUE(Create("ann", "talk").ok());
  unsteady->times_ = 3;
  EXPECT_TRUE(store.Load("ann", "talk").ok());
  unsteady->times_ = 3;
  EXPECT_EQ(Must(store.List("ann")).size(), 1u);
  unsteady->times_ = 1000;
  EXPECT_EQ(store.Load("ann", "talk").status().code(), absl::StatusCode::kAborted);
}

// What the store refuses is none of the client's faults, and a list without what could not be read
// would say that it is gone.
TEST_F(SessionStoreTest, ErrorsOfTheStoreAreTheServers) {
  class Failing final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
      if (!error_.ok()) return error_;
      return ForwardingStore::Get(key);
    }
    absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                         StateTag replaced) override {
      if (!error_.ok()) return error_;
      return ForwardingStore::PutOver(key, replaced);
    }
    absl::Status Delete(absl::string_view key) override {
      return error_.ok() ? ForwardingStore::Delete(key) : error_;
    }
    absl::Status error_;
  };
  const auto states = std::make_shared<Failing>(states_);
  SessionStore store(states, {});
  ASSERT_TRUE(Create("ann", "talk").ok());
  for (const auto& [error, expected] : std::vector<std::pair<absl::StatusCode, absl::StatusCode>>{
           {absl::StatusCode::kUnauthenticated, absl::StatusCode::kInternal},
           {absl::StatusCode::kPermissionDenied, absl::StatusCode::kInternal},
           {absl::StatusCode::kFailedPrecondition, absl::StatusCode::kInternal},
           {absl::StatusCode::kResourceExhausted, absl::StatusCode::kUnavailable},
           {absl::StatusCode::kDeadlineExceeded, absl::StatusCode::kUnavailable},
           {absl::StatusCode::kUnavailable, absl::StatusCode::kUnavailable}}) {
    states->error_ = absl::Status(error, "no");
    EXPECT_EQ(store.Load("ann", "talk").status().code(), expected);
    EXPECT_EQ(store.List("ann").status().code(), expected);
    auto hold = Must(store.Acquire("ann", "talk"));
    EXPECT_EQ(store.Save(hold, MakeSession("talk")).code(), expected);
    EXPECT_EQ(store.Delete(hold, "talk").code(), expected);
  }
  states->error_ = absl::NotFoundError("gone");
  EXPECT_EQ(store.Load("ann", "talk").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(Must(store.List("ann")).empty());
  auto hold = Must(store.Acquire("ann", "talk"));
  EXPECT_EQ(store.Save(hold, MakeSession("talk")).code(), absl::StatusCode::kInternal)
      << "such as a folder that is gone";
}

// Where the store is concerns its operator, not the clients.
TEST_F(SessionStoreTest, ErrorsOfTheStoreAreTheOperatorsInFull) {
  class Away final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
      if (!is_away_) return ForwardingStore::Get(key);
      return absl::UnavailableError("Redis at 10.0.0.7:6379 cannot be reached");
    }
    bool is_away_ = true;
  };
  std::vector<std::string> notes;
  const auto states = std::make_shared<Away>(states_);
  SessionStore store(states, {}, [&](absl::string_view sentence) { notes.emplace_back(sentence); });
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = store.Load("ann", "talk").status();
    EXPECT_EQ(status, absl::UnavailableError("the store of sessions does not answer"));
  }
  EXPECT_FALSE(store.up());
  // Once a minute: each request would tell it again.
  EXPECT_THAT(notes, testing::ElementsAre(
                         "the store of sessions: Redis at 10.0.0.7:6379 cannot be reached"));
  // That it has no such session is an answer, too.
  states->is_away_ = false;
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(store.Load("ann", "talk").status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(store.up());
  EXPECT_THAT(notes, testing::ElementsAre(testing::_, "the store of sessions: it answers again"));
  // Nothing more within the minute, so nothing of its end either.
  states->is_away_ = true;
  EXPECT_FALSE(store.Load("ann", "talk").ok());
  states->is_away_ = false;
  EXPECT_FALSE(store.Load("ann", "talk").ok());
  EXPECT_EQ(notes.size(), 2u);
}

// Reads nothing while it hangs. That takes no time: tests say how long is a long wait.
class HangingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  absl::StatusOr<std::unique_ptr<StateReader>> Get(absl::string_view key) override {
    ++calls_;
    if (!hangs_) return ForwardingStore::Get(key);
    return absl::DeadlineExceededError("no answer");
  }
  bool hangs_ = true;
  int calls_ = 0;
};

// Requests that wait one after the other for a store that hangs would wait for ever.
TEST_F(SessionStoreTest, OneRequestAtATimeWaitsForAStoreThatHangs) {
  const auto hanging = std::make_shared<HangingStore>(states_);
  SessionStore store(hanging,
                     {.long_wait = absl::ZeroDuration(), .rest = absl::InfiniteDuration()});
  ASSERT_TRUE(Create("ann", "talk").ok());
  const auto load = [&] { return store.Load("ann", "talk").status().code(); };
  EXPECT_EQ(load(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hanging->calls_, 1);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(load(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store.List("ann").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(hanging->calls_, 1);
  // A turn that was computed is saved if there is any way.
  EXPECT_EQ(store.Save(Must(store.Acquire("ann", "new")), MakeSession("new")), absl::OkStatus());
  hanging->hangs_ = false;
  EXPECT_EQ(load(), absl::StatusCode::kUnavailable) << "before the rest has ended";
}

TEST_F(SessionStoreTest, AStoreThatHasHungIsUsedAgain) {
  const auto hanging = std::make_shared<HangingStore>(states_);
  SessionStore store(hanging, {.long_wait = absl::ZeroDuration(), .rest = absl::ZeroDuration()});
  ASSERT_TRUE(Create("ann", "talk").ok());
  const auto load = [&] { return store.Load("ann", "talk").status().code(); };
  for (int calls = 1; calls <= 3; ++calls) {
    EXPECT_EQ(load(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(hanging->calls_, calls);
  }
  hanging->hangs_ = false;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(load(), absl::StatusCode::kOk);
}

// One that fails at once keeps nobody waiting.
TEST_F(SessionStoreTest, AStoreThatIsAwayIsAskedByEveryRequest) {
  const auto hanging = std::make_shared<HangingStore>(states_);
  SessionStore store(hanging,
                     {.long_wait = absl::InfiniteDuration(), .rest = absl::InfiniteDuration()});
  for (int calls = 1; calls <= 3; ++calls) {
    EXPECT_EQ(store.Load("ann", "talk").status().code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(hanging->calls_, calls);
  }
}

TEST_F(SessionStoreTest, Limits) {
  EXPECT_EQ(Create("ann", "a b").code(), absl::StatusCode::kInvalidArgument);
  for (const char* name : {"a", "b", "c"}) ASSERT_TRUE(Create("ann", name).ok());
  EXPECT_EQ(Create("ann", "a").code(), absl::StatusCode::kAlreadyExists);
  const absl::Status full = Create("ann", "d");
  EXPECT_EQ(full.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(full.message()), HasSubstr("no more than 3"));
  EXPECT_TRUE(Create("bob", "d").ok());
  Session session = Must(store_.Load("ann", "a"));
  AddTurn(session, Kind::kAnswer, 0, std::vector<int32_t>(10'000, 1), {});
  auto hold = Must(store_.Acquire("ann", "a"));
  ASSERT_TRUE(store_.Load(hold, "a").ok());
  EXPECT_EQ(store_.Save(hold, session).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(Must(store_.Load("ann", "a")).length(), 0u) << "as it was";
}

// A list may be as long as the database: a new session needs none below the limit.
TEST_F(SessionStoreTest, NewSessionsAreCountedNotListed) {
  class CountedStore final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
      ++lists_;
      return ForwardingStore::List(prefix);
    }
    // Does not know yet that others have deleted some.
    absl::StatusOr<size_t> Count(absl::string_view prefix) override {
      const absl::StatusOr<size_t> count = ForwardingStore::Count(prefix);
      return count.ok() ? *count + gone_ : count;
    }
    int lists_ = 0;
    size_t gone_ = 0;
  };
  const auto states = std::make_shared<CountedStore>(states_);
  SessionStore store(states, {.most_sessions = 3, .most_bytes = 20'000});
  const auto create = [&](const std::string& name) {
    const auto hold = Must(store.Acquire("ann", name));
    return store.Create(hold, "ann", MakeSession(name)).code();
  };
  for (const char* name : {"a", "b"}) EXPECT_EQ(create(name), absl::StatusCode::kOk);
  EXPECT_EQ(create("a"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(states->lists_, 0);
  states->gone_ = 5;
  EXPECT_EQ(create("c"), absl::StatusCode::kOk);
  EXPECT_EQ(states->lists_, 1);
  EXPECT_EQ(create("a"), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(create("d"), absl::StatusCode::kPermissionDenied);
}

// Whatever bytes there are: an error, and the other sessions are there.
TEST_F(SessionStoreTest, DamagedStates) {
  ASSERT_TRUE(Create("ann", "good").ok());
  ASSERT_TRUE(Create("ann", "talk").ok());
  const std::string key = Must(states_->List(""))[1];
  std::vector<uint8_t> bytes;
  {
    const auto reader = Must(states_->Get(key));
    bytes.resize(reader->remaining());
    ASSERT_TRUE(reader->Read(absl::MakeSpan(bytes)).ok());
  }
  std::string why;
  const auto load_with = [&](const std::vector<uint8_t>& damaged) {
    const auto writer = Must(states_->Put(key));
    EXPECT_TRUE(writer->Append(damaged).ok());
    EXPECT_TRUE(writer->Commit().ok());
    EXPECT_TRUE(store_.Load("ann", "good").ok());
    EXPECT_TRUE(store_.List("ann").ok());
    why = std::string(store_.Load("ann", "talk").status().message());
    return store_.Load("ann", "talk").status().code();
  };
  EXPECT_EQ(load_with(bytes), absl::StatusCode::kOk);
  // A document, and a summary, beyond their bounds: see StateHead.
  for (const auto& [at, says] : std::vector<std::pair<size_t, std::string>>{
           {8 + 2, "has a summary of "}, {16 + 2, "has a document of "}}) {
    std::vector<uint8_t> longer = bytes;
    longer[at] += 1;  // 65536
    EXPECT_EQ(load_with(longer), absl::StatusCode::kDataLoss);
    EXPECT_THAT(why, HasSubstr(says));
    EXPECT_THAT(why, HasSubstr(at == 10 ? "more than 4096" : "more than 20000"));
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::vector<uint8_t> damaged = bytes;
    damaged[i] ^= 1;
    EXPECT_EQ(load_with(damaged), absl::StatusCode::kDataLoss) << i;
    EXPECT_EQ(load_with({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(i)}),
              absl::StatusCode::kDataLoss)
        << i;
  }
}

// A session that cannot be read is still its client's: it is listed and can be deleted. Its
// operator is told once, however often clients ask.
TEST_F(SessionStoreTest, UnreadableSessions) {
  struct Case {
    std::function<void(std::string&)> change;
    std::string says;
  };
  const auto with_format_2 = [](std::string& state) {
    uint64_t sizes[2];  // see StateHead
    std::memcpy(sizes, state.data() + 8, sizeof(sizes));
    state.replace(state.find(R"("format":1)"), 10, R"("format":2)");
    const uint64_t checksum =
        Xxh64Of(state.data() + 32, state.size() - 32, sizes[0] * 31 + sizes[1]);
    std::memcpy(state.data() + 24, &checksum, sizeof(checksum));
  };
  const std::vector<Case> cases = {
      {[](std::string& state) { state[7] = '2'; }, "was written by another version of Inlay"},
      {[](std::string& state) { state = "rubbish"; }, "is damaged: it is cut off"},
      {[](std::string& state) { state[0] = 'I'; }, "is damaged: it does not begin as one"},
      {[](std::string& state) { state.resize(40); }, "is damaged: it is shorter than it says"},
      {[](std::string& state) { state[33] = '!'; }, "cannot be read: the summary is not JSON"}};
  ASSERT_TRUE(Create("ann", "whole").ok());
  const std::string whole = Must(states_->List("")).at(0);
  const std::string key = absl::StrCat(absl::StripSuffix(whole, "whole"), "talk");
  const auto store_state = [&](const std::string& state) {
    const auto writer = Must(states_->Put(key));
    ASSERT_TRUE(
        writer->Append({reinterpret_cast<const uint8_t*>(state.data()), state.size()}).ok());
    ASSERT_TRUE(writer->Commit().ok());
  };
  for (const Case& one : cases) {
    ASSERT_TRUE(Create("ann", "talk").ok());
    std::string state = Must(states_->ReadBeginning(key, StateStore::kMostBeginning)).bytes;
    one.change(state);
    store_state(state);
    std::vector<std::string> notes;
    SessionStore store(states_, {}, [&](absl::string_view note) { notes.emplace_back(note); });
    for (int i = 0; i < 2; ++i) {
      const std::vector<SessionSummary> list = Must(store.List("ann"));
      ASSERT_EQ(list.size(), 2u);
      EXPECT_EQ(list[0].name, "talk");
      EXPECT_THAT(list[0].unreadable,
                  HasSubstr(absl::StrCat("the stored session talk ", one.says)));
      EXPECT_EQ(list[0].bytes, state.size());
      EXPECT_EQ(list[1].unreadable, "");
      EXPECT_EQ(store.Load("ann", "talk").status().code(), absl::StatusCode::kDataLoss);
    }
    EXPECT_THAT(notes, testing::ElementsAre(testing::AllOf(HasSubstr(key), HasSubstr(one.says))));
    const auto hold = Must(store.Acquire("ann", "talk"));
    EXPECT_EQ(store.Create(hold, "ann", MakeSession("talk")).code(),
              absl::StatusCode::kAlreadyExists);
    EXPECT_EQ(store.Delete(hold, "talk"), absl::OkStatus());
  }
  // What only the document shows, a list does not.
  ASSERT_TRUE(Create("ann", "talk").ok());
  std::string state = Must(states_->ReadBeginning(key, StateStore::kMostBeginning)).bytes;
  with_format_2(state);
  store_state(state);
  EXPECT_EQ(Must(store_.List("ann"))[0].unreadable, "");
  EXPECT_THAT(store_.Load("ann", "talk").status().message(),
              HasSubstr("talk cannot be read: the session is of the format 2"));
  // A file that was copied to another name.
  store_state(Must(states_->ReadBeginning(whole, StateStore::kMostBeginning)).bytes);
  EXPECT_THAT(store_.Load("ann", "talk").status().message(),
              HasSubstr("talk is damaged: it has the name whole"));
}

// The same states under another store object, as after a restart.
TEST(SessionStoreFiles, OutliveTheServer) {
  const TempFolder folder;
  Session session = MakeSession("talk");
  AddTurn(session, Kind::kRaw, 0, {1}, {2});
  {
    SessionStore store(std::make_shared<FileStore>(folder.path()), {});
    const auto hold = Must(store.Acquire("ann", "talk"));
    ASSERT_TRUE(store.Create(hold, "ann", session).ok());
  }
  SessionStore store(std::make_shared<FileStore>(folder.path()), {});
  EXPECT_EQ(SessionDocument(Must(store.Load("ann", "talk"))), SessionDocument(session));
  const auto hold = Must(store.Acquire("ann", "talk"));
  EXPECT_EQ(store.Create(hold, "ann", session).code(), absl::StatusCode::kAlreadyExists);
  // Names of any length are within those of keys.
  const std::string longest(64, 'x');
  const auto other = Must(store.Acquire("ann", longest));
  EXPECT_TRUE(store.Create(other, "ann", MakeSession(longest)).ok());
}

}  // namespace
}  // namespace inlay::serve
