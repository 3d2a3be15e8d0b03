// States on a real server, and what a server that dies, stops or refuses leads to.
#include "io/store/state_store_redis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "io/store/redis_connection.h"
#include "tests/io/store/open_redis.h"
#include "tests/io/store/redis_server.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class RedisStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.started())
        << "redis-server cannot be started: install the package redis-server (scripts/setup)";
    store_ = OpenRedis(server_.port());
    auto connection =
        RedisConnection::Connect({.port = server_.port(), .timeout = absl::Seconds(20)}, 1 << 21);
    ASSERT_TRUE(connection.ok()) << connection.status();
    raw_ = *std::move(connection);
  }

  int64_t KeysOnServer() {
    auto reply = raw_->Command({"DBSIZE"});
    return reply.ok() ? reply->integer : -1;
  }

  // How often the whole database was searched.
  int64_t Searches() {
    const std::string stats = Must(raw_->Command({"INFO", "commandstats"})).text;
    const size_t at = stats.find("cmdstat_scan:calls=");
    return at == std::string::npos ? 0 : std::atoll(stats.c_str() + at + 19);
  }

  // How many have been made to the server since it started.
  int64_t Connections() {
    constexpr char kField[] = "total_connections_received:";
    const std::string stats = Must(raw_->Command({"INFO", "stats"})).text;
    return std::atoll(stats.c_str() + stats.find(kField) + sizeof(kField) - 1);
  }

  // Runs a script that returns no array: what the store's own commands cannot do.
  void Eval(absl::string_view script) {
    auto reply = raw_->Command({"EVAL", script, "0"});
    ASSERT_TRUE(reply.ok()) << reply.status();
  }

  RedisServer server_;
  std::unique_ptr<StateStore> store_;
  std::unique_ptr<RedisConnection> raw_;
};

TEST_F(RedisStoreTest, RoundTrips) { CheckRoundTrips(*store_); }
TEST_F(RedisStoreTest, Beginnings) { CheckBeginnings(*store_); }
TEST_F(RedisStoreTest, Replacing) { CheckReplacing(*store_); }
TEST_F(RedisStoreTest, Deleting) { CheckDeleting(*store_); }
// More than one step of a search finds; and what is no state.
TEST_F(RedisStoreTest, Listing) {
  CheckListing(*store_, 3000);
  Eval(
      "redis.call('SET', 'inlay:c.text', 'x') redis.call('HSET', 'inlay:c.hash', 'a', 'b') "
      "redis.call('HSET', 'other:c.1', 'manifest', 'b') return 1");
  ASSERT_TRUE(PutState(*store_, "c.1", {1}).ok());
  EXPECT_EQ(ListStates(*store_, "c."), std::vector<std::string>{"c.1"});
  // The prefix of all keys is no pattern either.
  const auto other = OpenRedisStore({.port = server_.port(), .prefix = "in[l]ay*?\\:"});
  ASSERT_TRUE(other.ok());
  ASSERT_TRUE(PutState(**other, "mine", {1}).ok());
  EXPECT_EQ(ListStates(**other, ""), std::vector<std::string>{"mine"});
}
TEST_F(RedisStoreTest, Counting) { CheckCounting(*store_, *OpenRedis(server_.port())); }
TEST_F(RedisStoreTest, CountingMeanwhile) { CheckCountingMeanwhile(*store_); }
TEST_F(RedisStoreTest, Keys) { CheckKeys(*store_); }
TEST_F(RedisStoreTest, Tags) { CheckTags(*store_, *OpenRedis(server_.port())); }
TEST_F(RedisStoreTest, RacingTags) { CheckRacingTags(*store_, *OpenRedis(server_.port())); }
TEST_F(RedisStoreTest, ConcurrentUse) { CheckConcurrentUse(*store_); }

// Other keys, of which there may be any number, are looked at once.
TEST_F(RedisStoreTest, TheIndexSparesSearches) {
  Eval("for i = 1, 20000 do redis.call('SET', 'other:' .. i, 'x') end return 1");
  // States from before there was an index.
  ASSERT_TRUE(PutState(*store_, "a.1", {1}).ok());
  ASSERT_TRUE(PutState(*store_, "b.1", {1}).ok());
  EXPECT_EQ(CountStates(*store_, "a."), 1u);
  const int64_t searches = Searches();
  EXPECT_GT(searches, 10);
  Eval("assert(redis.call('TTL', 'inlay::index-0') > 3500) return 1");
  const auto other = OpenRedis(server_.port());
  for (StateStore* store : {store_.get(), other.get()}) {
    ASSERT_TRUE(PutState(*store, "a.2", {1}).ok());
    EXPECT_EQ(CountStates(*other, "a."), 2u);
    EXPECT_EQ(ListStates(*other, "a."), (std::vector<std::string>{"a.1", "a.2"}));
    EXPECT_EQ(CountStates(*store_, ""), 3u);
    ASSERT_TRUE(store->Delete("a.2").ok());
    EXPECT_EQ(ListStates(*store_, "b"), (std::vector<std::string>{"b.1"}));
  }
  EXPECT_EQ(Searches(), searches);
  // A writer that had died before it was deleted from the index would leave this.
  Eval("return redis.call('ZADD', 'inlay::index-0', 0, 'a.3')");
  EXPECT_EQ(CountStates(*store_, "a."), 2u);
  EXPECT_EQ(ListStates(*store_, "a."), std::vector<std::string>{"a.1"});
  EXPECT_EQ(CountStates(*store_, "a."), 1u);
  // As does a state that the server has deleted.
  const auto brief =
      Must(OpenRedisStore({.port = server_.port(), .expiry = absl::Milliseconds(1)}));
  ASSERT_TRUE(PutState(*brief, "a.4", {2}).ok());
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_EQ(ListStates(*store_, "a."), std::vector<std::string>{"a.1"});
  EXPECT_EQ(CountStates(*store_, "a."), 1u);
  EXPECT_EQ(Searches(), searches);
}

// An index is believed only if whoever began it has come to its end, and only while it is there.
TEST_F(RedisStoreTest, AnIndexThatIsNotWhole) {
  const std::vector<std::string> both = {"a.1", "a.2"};
  ASSERT_TRUE(PutState(*store_, "a.1", {1}).ok());
  // One that was begun by a process that died.
  Eval("return redis.call('ZADD', 'inlay::index-0', 0, '~1234')");
  ASSERT_TRUE(PutState(*store_, "a.2", {1}).ok());
  EXPECT_EQ(ListStates(*store_, "a"), both);
  EXPECT_EQ(CountStates(*store_, "a"), 2u);
  const int64_t searches = Searches();
  EXPECT_EQ(ListStates(*store_, "a"), both);
  EXPECT_EQ(Searches(), searches) << "it is whole now";
  Eval("assert(redis.call('TTL', 'inlay::index-0') > 3500) return 1");
  // It was evicted, or has expired.
  Eval("return redis.call('DEL', 'inlay::index-0')");
  ASSERT_TRUE(store_->Delete("a.1").ok());
  ASSERT_TRUE(PutState(*store_, "a.1", {2}).ok());
  EXPECT_EQ(CountStates(*store_, "a"), 2u);
  EXPECT_EQ(ListStates(*store_, "a"), both);
  // Another program's value of that name stays as it is.
  Eval("redis.call('DEL', 'inlay::index-0') redis.call('SET', 'inlay::index-0', 'x') return 1");
  ASSERT_TRUE(store_->Delete("a.2").ok());
  ASSERT_TRUE(PutState(*store_, "a.2", {2}).ok());
  EXPECT_EQ(CountStates(*store_, "a"), 2u);
  EXPECT_EQ(ListStates(*store_, "a"), both);
  Eval("assert(redis.call('GET', 'inlay::index-0') == 'x') return 1");
}

// More keys than a page of the index has.
TEST_F(RedisStoreTest, AnIndexOfManyPages) {
  ASSERT_TRUE(PutState(*store_, "a.1", {1}).ok());
  // Also a page without states.
  Eval(
      "redis.call('ZADD', 'inlay::index-0', 0, '~') "
      "for i = 1, 5000 do local key = string.format('a.%05d', i) "
      "redis.call('ZADD', 'inlay::index-0', 0, key) "
      "if i < 1000 or i > 2500 then redis.call('HSET', 'inlay:' .. key, 'manifest', 'x') end end "
      "return 1");
  EXPECT_EQ(CountStates(*store_, "a.0"), 5000u);
  EXPECT_EQ(ListStates(*store_, "a.0").size(), 3499u);
  EXPECT_EQ(CountStates(*store_, "a.0"), 3499u);
  EXPECT_EQ(Searches(), 0);
}

// A full server has no place for an index, but what it has must be found to be deleted.
TEST_F(RedisStoreTest, AFullServerIsListed) {
  ASSERT_TRUE(PutState(*store_, "a.1", {1}).ok());
  ASSERT_TRUE(raw_->Command({"CONFIG", "SET", "maxmemory", "1"}).ok());
  EXPECT_EQ(ListStates(*store_, "a"), std::vector<std::string>{"a.1"});
  EXPECT_EQ(CountStates(*store_, "a"), 1u);
  EXPECT_EQ(KeysOnServer(), 1);
  EXPECT_TRUE(store_->Delete("a.1").ok());
  EXPECT_EQ(CountStates(*store_, "a"), 0u);
}

// A reader has one state whole, or learns that there is another one: that is no damage.
TEST_F(RedisStoreTest, ReplacedWhileItIsRead) {
  for (const bool deleted : {false, true}) {
    ASSERT_TRUE(PutState(*store_, "a", RandomBytes(2'500'000, 1)).ok());
    const auto reader = store_->Get("a");
    ASSERT_TRUE(reader.ok());
    StateBytes piece(1000);
    ASSERT_TRUE((*reader)->Read(absl::MakeSpan(piece)).ok());
    ASSERT_TRUE((deleted ? store_->Delete("a") : PutState(*store_, "a", RandomBytes(9, 2))).ok());
    piece.resize(2'000'000);
    EXPECT_EQ((*reader)->Read(absl::MakeSpan(piece)).code(), absl::StatusCode::kAborted);
  }
}

TEST_F(RedisStoreTest, LeavesNothingBehind) {
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(3'000'000, 1)).ok());
  EXPECT_EQ(KeysOnServer(), 1);
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(1'500'000, 2)).ok());
  EXPECT_EQ(KeysOnServer(), 1);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(KeysOnServer(), 0);
  {
    auto writer = store_->Put("b");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(RandomBytes(1'500'000, 3)).ok());
    // What a writer has sent whose process is killed goes away by itself; what was committed stays.
    EXPECT_EQ(KeysOnServer(), 1);
    Eval(
        "for _, k in ipairs(redis.call('KEYS', '*')) do "
        "assert(redis.call('TTL', k) > 3000 and redis.call('TTL', k) <= 3600) end return 1");
  }
  EXPECT_EQ(KeysOnServer(), 0);
  ASSERT_TRUE(PutState(*store_, "c", {1, 2}).ok());
  Eval("assert(redis.call('TTL', 'inlay:c') == -1) return 1");
  // Whoever deletes the state's key, or evicts it, leaves no chunk without a manifest.
  Eval("redis.call('DEL', 'inlay:c') return 1");
  EXPECT_EQ(KeysOnServer(), 0);
}

// From the last time that it was stored or marked as used, whoever does that.
TEST_F(RedisStoreTest, StatesExpireWhereThatIsAskedFor) {
  const auto store = Must(OpenRedisStore({.port = server_.port(), .expiry = absl::Seconds(100)}));
  const auto ttl = [this] {
    return Must(raw_->Command({"EVAL", "return redis.call('TTL', 'inlay:a')", "0"})).integer;
  };
  for (int turn = 0; turn < 2; ++turn) {
    ASSERT_TRUE(PutState(*store, "a", RandomBytes(1'200'000, 1)).ok());
    EXPECT_GT(ttl(), 90);
    EXPECT_LE(ttl(), 100);
    Eval("return redis.call('EXPIRE', 'inlay:a', 20)");
    ExpectState(*store, "a", RandomBytes(1'200'000, 1));
    EXPECT_LE(ttl(), 20) << "it was read, not stored";
    ASSERT_TRUE(store->MarkUsed("a").ok());
    EXPECT_GT(ttl(), 90);
    Eval("return redis.call('EXPIRE', 'inlay:a', 20)");
    ASSERT_TRUE(store_->MarkUsed("a").ok());
    EXPECT_LE(ttl(), 20) << "by a server that keeps it";
  }
  ASSERT_TRUE(PutState(*store_, "a", {1}).ok());
  EXPECT_EQ(ttl(), -1) << "by a server that keeps it";
  const auto brief =
      Must(OpenRedisStore({.port = server_.port(), .expiry = absl::Milliseconds(1)}));
  ASSERT_TRUE(PutState(*brief, "a", {2}).ok());
  absl::SleepFor(absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsNotFound(GetState(*store, "a").status()));
  EXPECT_TRUE(store->MarkUsed("a").ok());
  EXPECT_EQ(ListStates(*store, ""), std::vector<std::string>{});
  EXPECT_FALSE(OpenRedisStore({.expiry = absl::Microseconds(1)}).ok());
  EXPECT_FALSE(OpenRedisStore({.expiry = -absl::Seconds(1)}).ok());
}

// At no moment of a Put is there a chunk that would stay when the writer and the manifest go.
TEST_F(RedisStoreTest, EveryUnfinishedChunkExpires) {
  auto writer = store_->Put("a");
  ASSERT_TRUE(writer.ok());
  for (uint64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE((*writer)->Append(RandomBytes(1 << 20, i)).ok());
    EXPECT_EQ(KeysOnServer(), 1);
    Eval(
        "for _, k in ipairs(redis.call('KEYS', '*')) do "
        "assert(redis.call('TTL', k) > 0) end return 1");
  }
  ASSERT_TRUE((*writer)->Commit().ok());
  EXPECT_EQ(KeysOnServer(), 1);
}

TEST_F(RedisStoreTest, DamageOnTheServerIsFound) {
  const StateBytes bytes = RandomBytes(2'500'000, 1);
  const auto damaged = [&](absl::string_view script) {
    ASSERT_TRUE(PutState(*store_, "a", bytes).ok());
    ASSERT_NO_FATAL_FAILURE(Eval(script));
    const absl::Status status = GetState(*store_, "a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << script << " " << status;
  };
  const auto set = [](const std::string& field, const std::string& value) {
    return "redis.call('HSET', 'inlay:a', '" + field + "', " + value + ") ";
  };
  const auto get = [](const std::string& field) {
    return "redis.call('HGET', 'inlay:a', '" + field + "')";
  };
  damaged(set("1", "'x' .. string.sub(" + get("1") + ", 2)") + "return 1");
  damaged(set("2", get("2") + " .. 'x'") + "return 1");
  damaged(set("0", "''") + "return 1");
  damaged("redis.call('HDEL', 'inlay:a', '2') return 1");
  damaged("local v = " + get("0") + " " + set("0", get("1")) + set("1", "v") + "return 1");
  damaged(set("manifest", "'x'") + "return 1");
  damaged(set("manifest", "''") + "return 1");
  damaged(set("manifest", "string.sub(" + get("manifest") + ", 1, 16) .. 'xyz'") + "return 1");
  // It can be deleted, and it does not stand in the way of a new state.
  EXPECT_TRUE(store_->Delete("a").ok());
  // And it does not stand in the way of a new state.
  EXPECT_TRUE(PutState(*store_, "a", bytes).ok());
  ExpectState(*store_, "a", bytes);
}

// Of a list of sessions it is most of what there is.
TEST_F(RedisStoreTest, DamageOfABeginningIsFoundAsFarAsItShows) {
  const auto damaged = [&](size_t bytes, absl::string_view script) {
    ASSERT_TRUE(PutState(*store_, "a", RandomBytes(bytes, 1)).ok());
    ASSERT_NO_FATAL_FAILURE(Eval(script));
    const absl::Status status = store_->ReadBeginning("a", 4096).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << script << " " << status;
  };
  for (const size_t bytes : {size_t{100}, size_t{1'200'000}}) {
    damaged(bytes, "redis.call('HDEL', 'inlay:a', '0') return 1");
    damaged(bytes, "redis.call('HSET', 'inlay:a', '0', 'short') return 1");
    damaged(bytes, "redis.call('HSET', 'inlay:a', 'manifest', 'x') return 1");
    damaged(bytes, "redis.call('HSET', 'inlay:a', 'manifest', '') return 1");
  }
  damaged(100,
          "local v = redis.call('HGET', 'inlay:a', '0') "
          "redis.call('HSET', 'inlay:a', '0', 'x' .. string.sub(v, 2)) return 1");
}

// A list of a thousand sessions would read a gigabyte.
TEST_F(RedisStoreTest, ABeginningCostsNoWholeChunk) {
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(1'000'000, 1)).ok());
  const auto sent = [&] {
    constexpr char kField[] = "total_net_output_bytes:";
    const std::string stats = Must(raw_->Command({"INFO", "stats"})).text;
    return std::atoll(stats.c_str() + stats.find(kField) + sizeof(kField) - 1);
  };
  const auto before = sent();
  EXPECT_EQ(Must(store_->ReadBeginning("a", 4096)).bytes.size(), 4096u);
  EXPECT_LT(sent() - before, 50'000);
}

// Somebody else's value is neither read nor replaced nor deleted.
TEST_F(RedisStoreTest, KeysOfAnotherTypeAreRefused) {
  const auto refused = [&](const absl::Status& status) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("'inlay:a'"));
    EXPECT_THAT(std::string(status.message()), HasSubstr("'list'"));
  };
  auto writer = store_->Put("a");
  ASSERT_TRUE(writer.ok());
  Eval("redis.call('RPUSH', 'inlay:a', 'x') return 1");
  refused(store_->Get("a").status());
  refused(store_->ReadBeginning("a", 10).status());
  refused(store_->Put("a").status());  // before anything is sent
  refused(store_->Delete("a"));
  ASSERT_TRUE((*writer)->Append(RandomBytes(10, 1)).ok());
  refused((*writer)->Commit());
  EXPECT_EQ(KeysOnServer(), 1);
  Eval("assert(redis.call('LLEN', 'inlay:a') == 1) return 1");
}

TEST_F(RedisStoreTest, ErrorRepliesHaveTheirCode) {
  const auto code = [&](std::initializer_list<absl::string_view> words) {
    const absl::Status status = raw_->Command(words).status();
    EXPECT_THAT(std::string(status.message()), AnyOf(HasSubstr("says: "), HasSubstr("cluster")));
    return status.code();
  };
  Eval("redis.call('RPUSH', 'list', 'x') return 1");
  EXPECT_EQ(code({"GET", "list"}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(code({"NONSENSE"}), absl::StatusCode::kInternal);
  // The connection stays usable after each of them.
  for (const auto& [error, expected] : std::vector<std::pair<std::string, absl::StatusCode>>{
           {"NOAUTH a", absl::StatusCode::kUnauthenticated},
           {"WRONGPASS a", absl::StatusCode::kUnauthenticated},
           {"NOPERM a", absl::StatusCode::kPermissionDenied},
           {"OOM a", absl::StatusCode::kResourceExhausted},
           {"READONLY a", absl::StatusCode::kUnavailable},
           {"LOADING a", absl::StatusCode::kUnavailable},
           {"ERR Error running script (call to f_0): @user_script:1: -OOM a",
            absl::StatusCode::kResourceExhausted},
           {"MOVED 7 a:1", absl::StatusCode::kUnavailable},
           {"ASK 7 a:1", absl::StatusCode::kUnavailable},
           {"TRYAGAIN a", absl::StatusCode::kUnavailable},
           {"CLUSTERDOWN a", absl::StatusCode::kUnavailable},
           {"OOMPH a", absl::StatusCode::kInternal}}) {
    EXPECT_EQ(code({"EVAL", "return redis.error_reply('" + error + "')", "0"}), expected) << error;
  }
  EXPECT_EQ(KeysOnServer(), 1);
}

TEST_F(RedisStoreTest, AFullServerIsResourceExhausted) {
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  ASSERT_TRUE(raw_->Command({"CONFIG", "SET", "maxmemory", "1"}).ok());
  const absl::Status status = PutState(*store_, "a", RandomBytes(1'500'000, 1));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  ExpectState(*store_, "a", {1, 2, 3});
}

// Otherwise nothing else could be stored until they expire.
TEST_F(RedisStoreTest, ChunksOfAStateThatFindsNoPlaceAreDeleted) {
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  {
    const auto writer = store_->Put("a");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(RandomBytes(3'500'000, 1)).ok());
    EXPECT_EQ(KeysOnServer(), 2);
    ASSERT_TRUE(raw_->Command({"CONFIG", "SET", "maxmemory", "1"}).ok());
    EXPECT_EQ((*writer)->Append(RandomBytes(1'500'000, 2)).code(),
              absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(KeysOnServer(), 1);
  ExpectState(*store_, "a", {1, 2, 3});
}

TEST_F(RedisStoreTest, ChunkEvictedWhileWriting) {
  ASSERT_TRUE(PutState(*store_, "a", {7}).ok());
  auto writer = store_->Put("a");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(RandomBytes(1'500'000, 1)).ok());
  Eval(
      "for _, k in ipairs(redis.call('KEYS', '{inlay:a}:*')) do "
      "if redis.call('TTL', k) > 0 then redis.call('DEL', k) end end return 1");
  EXPECT_EQ((*writer)->Commit().code(), absl::StatusCode::kDataLoss);
  ExpectState(*store_, "a", {7});
  // The chunk that was still there has been deleted.
  EXPECT_EQ(KeysOnServer(), 1);
}

// Of writers that replace each other's state at the same time, each deletes what it replaced.
TEST_F(RedisStoreTest, RacingWritersLeaveNothingBehind) {
  std::vector<std::thread> threads;
  for (uint8_t t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 50; ++i) EXPECT_TRUE(PutState(*store_, "a", {t}).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(KeysOnServer(), 1);
}

TEST_F(RedisStoreTest, ServerDies) {
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(3'000'000, 1)).ok());
  auto writer = store_->Put("a");
  auto reader = store_->Get("a");
  ASSERT_TRUE(writer.ok() && reader.ok());
  StateBytes piece(1000);
  ASSERT_TRUE((*reader)->Read(absl::MakeSpan(piece)).ok());
  ASSERT_TRUE((*writer)->Append(piece).ok());
  server_.Kill();
  const absl::Time start = absl::Now();
  EXPECT_EQ((*writer)->Append(RandomBytes(3'000'000, 2)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ((*writer)->Commit().code(), absl::StatusCode::kUnavailable);
  piece.resize(2'000'000);
  EXPECT_EQ((*reader)->Read(absl::MakeSpan(piece)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(store_->Get("a").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_LT(absl::Now() - start, kRedisPatience);
}

TEST_F(RedisStoreTest, ConnectionsAreUsedAgain) {
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  const int64_t before = Connections();
  for (int i = 0; i < 20; ++i) {
    ExpectState(*store_, "a", {1, 2, 3});
    EXPECT_EQ(ListStates(*store_, "").size(), 1u);
  }
  EXPECT_EQ(Connections(), before);
  // Readers at the same time have one each, of which the store keeps a few.
  {
    std::vector<std::unique_ptr<StateReader>> readers;
    for (int i = 0; i < 20; ++i) readers.push_back(Must(store_->Get("a")));
    EXPECT_EQ(Connections(), before + 19);
    store_.reset();  // the connections outlive it
    StateBytes piece(3);
    for (auto& reader : readers) EXPECT_TRUE(reader->Read(absl::MakeSpan(piece)).ok());
  }
  store_ = OpenRedis(server_.port());
  ExpectState(*store_, "a", {1, 2, 3});
}

// Servers close connections that are idle for as long as their `timeout`, or start anew.
TEST_F(RedisStoreTest, ConnectionsThatWereClosedCostNoError) {
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(raw_->Command({"CLIENT", "KILL", "TYPE", "normal"}).ok());
    ExpectState(*store_, "a", {1, 2, 3});
    ASSERT_TRUE(raw_->Command({"CLIENT", "KILL", "TYPE", "normal"}).ok());
    EXPECT_TRUE(PutState(*store_, "b", {1}).ok());
    ASSERT_TRUE(raw_->Command({"CLIENT", "KILL", "TYPE", "normal"}).ok());
    EXPECT_EQ(ListStates(*store_, "").size(), 2u);
  }
}

TEST_F(RedisStoreTest, ServerStopsAndGoesOn) {
  std::unique_ptr<StateStore> store = OpenRedis(server_.port(), kRedisTimeout);
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  server_.Signal(SIGSTOP);
  const absl::Time start = absl::Now();
  EXPECT_EQ(store->Get("a").status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(PutState(*store, "a", RandomBytes(3'000'000, 1)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, kRedisPatience);
  server_.Signal(SIGCONT);
  ExpectState(*store_, "a", {1, 2, 3});
}

}  // namespace
}  // namespace inlay
