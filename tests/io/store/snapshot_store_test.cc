// Snapshots on a real server: what is found, what expires, the budget, and what the server loses.
#include "io/store/open_snapshot_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/store/redis_connection.h"
#include "tests/io/store/redis_cluster.h"
#include "tests/io/store/redis_server.h"
#include "tests/io/store/snapshot_store_contract.h"
#include "tests/must.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;

class SnapshotStoreTest : public ::testing::Test {
 protected:
  explicit SnapshotStoreTest(const std::vector<std::string>& arguments = {}) : server_(arguments) {}

  void SetUp() override {
    ASSERT_TRUE(server_.started())
        << "redis-server cannot be started: install the package redis-server (scripts/setup)";
    raw_ = Must(
        RedisConnection::Connect({.port = server_.port(), .timeout = kSnapshotLimit}, 1 << 21));
  }

  std::unique_ptr<SnapshotStore> Open(uint64_t budget = 1 << 30,
                                      absl::Duration expiry = absl::Hours(1)) {
    auto store =
        Must(OpenSnapshotStore({.redis = {.port = server_.port(), .timeout = kSnapshotLimit},
                                .budget_bytes = budget,
                                .expiry = expiry}));
    EXPECT_TRUE(store->Connect().ok());
    return store;
  }

  // Runs a script that returns no array, and returns its integer.
  int64_t Eval(absl::string_view script) {
    auto reply = raw_->Command({"EVAL", script, "0"});
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply.ok() ? reply->integer : -1;
  }

  // The bytes of all values on the server, and what the store takes them for.
  int64_t BytesThere() {
    return Eval(
        "local sum = 0 for _, key in ipairs(redis.call('KEYS', 'inlay:{prefixes}:*')) do "
        "if redis.call('TYPE', key).ok == 'string' and key ~= 'inlay:{prefixes}:bytes' then "
        "sum = sum + redis.call('STRLEN', key) end end return sum");
  }
  int64_t BytesCounted() {
    return Eval("return tonumber(redis.call('GET', 'inlay:{prefixes}:bytes') or 0)");
  }

  RedisServer server_;
  std::unique_ptr<RedisConnection> raw_;
};

TEST_F(SnapshotStoreTest, AnotherServerFindsWhatOneHasWritten) {
  ExpectOneFindsWhatTheOtherWrote(*Open(), *Open());
  EXPECT_EQ(BytesThere(), 11);
  EXPECT_EQ(BytesCounted(), 11);
}

// The first one stays: it is the same value.
TEST_F(SnapshotStoreTest, WrittenTwiceItIsThereOnce) {
  const auto one = Open(), other = Open();
  EXPECT_TRUE(WriteSnapshot(*one, "a", SnapshotValue(1000, 'a')));
  EXPECT_TRUE(WriteSnapshot(*other, "a", SnapshotValue(2000, 'b')));
  EXPECT_EQ(BytesThere(), 1000);
  EXPECT_EQ(BytesCounted(), 1000);
}

TEST_F(SnapshotStoreTest, TheLeastRecentlyUsedGoesFirst) {
  // Times of use are in milliseconds.
  ExpectTheLeastRecentlyUsedGoesFirst(*Open(10'000), *Open(10'000), absl::Milliseconds(5));
}

// Servers that write at the same time: at no moment is there more than the budget.
TEST_F(SnapshotStoreTest, TheBudgetHoldsWithSeveralWriters) {
  static constexpr int64_t kBudget = 5'000'000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([this, t] {
      const auto store = Open(kBudget);
      for (int i = 0; i < 12; ++i)
        Must(store->Write("root", absl::StrCat(t, ".", i), 7,
                          SnapshotValue(700'000 + 300'000 * t, 'x'), NeverStop));
    });
  }
  std::thread watcher([this] {
    for (int i = 0; i < 100; ++i) EXPECT_LE(BytesThere(), kBudget);
  });
  for (std::thread& writer : writers) writer.join();
  watcher.join();
  EXPECT_GT(BytesThere(), kBudget / 2);
  EXPECT_LE(BytesThere(), kBudget);
  EXPECT_EQ(BytesCounted(), BytesThere()) << "evicted while they were written, or whole";
}

TEST_F(SnapshotStoreTest, ExpireWhenTheyAreNotUsed) {
  const auto store = Open(10'000, absl::Seconds(100));
  EXPECT_TRUE(WriteSnapshot(*store, "a", SnapshotValue(4000, 'a')));
  const auto ttl = [this](const std::string& name) {
    return Eval(absl::StrCat("return redis.call('TTL', 'inlay:{prefixes}:", name, "')"));
  };
  for (const char* name : {"a", "root"}) {
    EXPECT_GT(ttl(name), 90);
    EXPECT_LE(ttl(name), 100);
    Eval(absl::StrCat("return redis.call('EXPIRE', 'inlay:{prefixes}:", name, "', 30)"));
  }
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
  for (const char* name : {"a", "root"}) EXPECT_GT(ttl(name), 90) << "it was used";
  Eval("return redis.call('PEXPIRE', 'inlay:{prefixes}:a', 1)");
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  // What expired counts until room is made, at the latest when it would have expired anyway.
  EXPECT_TRUE(WriteSnapshot(*store, "b", SnapshotValue(10'000, 'b')));
  EXPECT_EQ(BytesCounted(), 10'000);
  // It has to be asked before what was written last expires, too.
  EXPECT_TRUE(WithSomeTime(absl::Milliseconds(50), [&](absl::Duration expiry) {
    const auto brief = Open(10'000, expiry);
    EXPECT_TRUE(WriteSnapshot(*brief, "c", SnapshotValue(10, 'c')));
    absl::SleepFor(expiry + absl::Milliseconds(10));
    EXPECT_TRUE(WriteSnapshot(*brief, "d", SnapshotValue(20, 'd')));
    return BytesCounted() == 20;
  }));
}

// A writer that dies leaves what expires, and what is counted until then.
TEST_F(SnapshotStoreTest, UnfinishedOnesGoAway) {
  const auto store = Open(4'000'000);
  int pieces = 0;
  const auto dies = [&pieces] { return ++pieces > 2; };
  EXPECT_FALSE(Must(store->Write("root", "a", 7, SnapshotValue(3'500'000, 'a'), dies)));
  EXPECT_EQ(BytesThere(), 2 << 20);
  EXPECT_EQ(BytesCounted(), 3'500'000);
  const int64_t ttl = Eval(
      "local least = 100 for _, key in ipairs(redis.call('KEYS', '*unfinished*')) do "
      "least = math.min(least, redis.call('TTL', key)) end return least >= 0 and least");
  EXPECT_GT(ttl, 30);
  EXPECT_LE(ttl, 60);
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  EXPECT_TRUE(WriteSnapshot(*store, "b", SnapshotValue(1'000'000, 'b'))) << "it makes room, too";
  EXPECT_EQ(BytesThere(), 1'000'000);
  // One that is evicted while it is written is not stored.
  const auto other = Open(4'000'000);
  bool evicted = false;
  EXPECT_FALSE(Must(store->Write("root", "c", 7, SnapshotValue(3'000'000, 'c'), [&] {
    if (!std::exchange(evicted, true)) {
      EXPECT_TRUE(WriteSnapshot(*other, "d", SnapshotValue(3'900'000, 'd')));
    }
    return false;
  })));
  EXPECT_EQ(FindSnapshot(*store, {"c", "d"}), 1u);
  EXPECT_LE(BytesThere(), 3'900'000 + (1 << 20));
}

// Whatever a server has lost, what is there is counted again.
TEST_F(SnapshotStoreTest, TheCountIsMadeAnew) {
  const auto store = Open(10'000);
  EXPECT_TRUE(WriteSnapshot(*store, "a", SnapshotValue(3000, 'a')));
  Eval("return redis.call('DEL', 'inlay:{prefixes}:bytes')");
  EXPECT_TRUE(WriteSnapshot(*store, "b", SnapshotValue(3000, 'b')));
  EXPECT_EQ(BytesCounted(), 6000);
  Eval("return redis.call('DEL', 'inlay:{prefixes}:index')");
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
  EXPECT_EQ(BytesCounted(), 3000) << "of what is used";
  EXPECT_TRUE(WriteSnapshot(*store, "c", SnapshotValue(3000, 'c')));
  EXPECT_EQ(BytesCounted(), 6000);
  ASSERT_TRUE(raw_->Command({"FLUSHALL"}).ok());
  EXPECT_EQ(FindSnapshot(*store, {"a", "b", "c"}), std::nullopt);
  EXPECT_TRUE(WriteSnapshot(*store, "d", SnapshotValue(10'000, 'd')));
  EXPECT_EQ(BytesCounted(), 10'000);
}

TEST_F(SnapshotStoreTest, AServerThatDiesOrHangsIsAnErrorInTime) {
  const auto store = Open();
  EXPECT_TRUE(WriteSnapshot(*store, "a", SnapshotValue(1000, 'a')));
  server_.Signal(SIGSTOP);
  const absl::Time start = absl::Now();
  EXPECT_EQ(store->Find("root", {"a"}, absl::Milliseconds(50)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, kSnapshotLimit / 2);
  const auto hasty = Must(
      OpenSnapshotStore({.redis = {.port = server_.port(), .timeout = absl::Milliseconds(100)}}));
  EXPECT_EQ(hasty->Find("root", {"a"}, kSnapshotLimit).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "it is not connected";
  EXPECT_EQ(hasty->Connect().code(), absl::StatusCode::kDeadlineExceeded);
  server_.Signal(SIGCONT);
  EXPECT_FALSE(store->Lengths("root", kSnapshotLimit).ok())
      << "the late answer is no answer to this";
  ASSERT_TRUE(store->Connect().ok());
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
  server_.Kill();
  EXPECT_EQ(store->Find("root", {"a"}, kSnapshotLimit).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_EQ(store->Connect().code(), absl::StatusCode::kUnavailable);
}

// As docs/replicas.md has it.
class SnapshotRightsTest : public SnapshotStoreTest {
 protected:
  SnapshotRightsTest()
      : SnapshotStoreTest(
            {"--user",        "snapshots", "on",      ">secret", "~inlay:{prefixes}:*",
             "resetchannels", "-@all",     "+ping",   "+eval",   "+time",
             "+get",          "+set",      "+strlen", "+exists", "+append",
             "+getrange",     "+rename",   "+unlink", "+expire", "+pexpire",
             "+zadd",         "+zrem",     "+zcard",  "+zscore", "+zrange",
             "+sadd",         "+smembers"}) {}
};

TEST_F(SnapshotRightsTest, AUserWithFewRights) {
  RedisOptions redis = {.port = server_.port(), .user = "snapshots", .password = "secret"};
  const auto store = Must(OpenSnapshotStore({.redis = redis, .budget_bytes = 3'000'000}));
  ASSERT_TRUE(store->Connect().ok());
  EXPECT_TRUE(WriteSnapshot(*store, "a", SnapshotValue(2'000'000, 'a')));
  EXPECT_TRUE(WriteSnapshot(*store, "b", SnapshotValue(2'000'000, 'b')));
  ASSERT_TRUE(raw_->Command({"DEL", "inlay:{prefixes}:bytes"}).ok());
  EXPECT_EQ(FindSnapshot(*store, {"a", "b"}), 1u);
  EXPECT_THAT(Must(store->Lengths("root", kSnapshotLimit)), ElementsAre(7u));
  std::string read;
  EXPECT_TRUE(Must(store->Read("b", 0, 10, kSnapshotLimit, read)));
  EXPECT_TRUE(store->Remove("b").ok());
  redis.prefix = "other:";
  const auto elsewhere = Must(OpenSnapshotStore({.redis = redis}));
  ASSERT_TRUE(elsewhere->Connect().ok());
  EXPECT_EQ(elsewhere->Write("root", "a", 7, "x", NeverStop).status().code(),
            absl::StatusCode::kPermissionDenied);
}

// A cluster refuses scripts whose keys are in several slots.
TEST(SnapshotClusterTest, AllKeysAreInOneSlot) {
  const ClusterNode server;
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  server.GiveSlots(0, 16383);
  server.WaitForSlots();
  const auto store =
      Must(OpenSnapshotStore({.redis = {.port = server.port()}, .budget_bytes = 3'000'000}));
  ASSERT_TRUE(store->Connect().ok());
  for (const char* name : {"a", "b", "c"})
    EXPECT_TRUE(Must(store->Write("root", name, 7, SnapshotValue(1'200'000, *name), NeverStop)));
  const auto found = Must(store->Find("root", {"a", "b", "c"}, kSnapshotLimit));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->index, 1u) << "the first one was evicted";
}

TEST(SnapshotStoreOptionsTest, Refused) {
  EXPECT_FALSE(OpenSnapshotStore({.redis = {.port = 0}}).ok());
  EXPECT_FALSE(OpenSnapshotStore({.redis = {}, .expiry = absl::ZeroDuration()}).ok());
}

}  // namespace
}  // namespace inlay
