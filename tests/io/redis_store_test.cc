// States on a real server, and what servers that die, stop or lie can do: an error, in time.
#include "io/state_store_redis.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/redis_connection.h"
#include "tests/io/loopback.h"
#include "tests/io/redis_server.h"
#include "tests/io/state_store_contract.h"

namespace inlay {
namespace {

constexpr absl::Duration kTimeout = absl::Milliseconds(300);
// Of one call that fails because of the server: a few commands, on a busy machine.
constexpr absl::Duration kPatience = absl::Seconds(5);

std::unique_ptr<StateStore> Open(uint16_t port, absl::Duration timeout = absl::Seconds(20)) {
  auto store = OpenRedisStore({.port = port, .timeout = timeout});
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

class RedisStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(server_.started())
        << "redis-server cannot be started: install the package redis-server (scripts/setup)";
    store_ = Open(server_.port());
    auto connection =
        RedisConnection::Connect({.port = server_.port(), .timeout = absl::Seconds(20)}, 1 << 21);
    ASSERT_TRUE(connection.ok()) << connection.status();
    raw_ = *std::move(connection);
  }

  int64_t KeysOnServer() {
    auto reply = raw_->Command({"DBSIZE"});
    return reply.ok() ? reply->integer : -1;
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
TEST_F(RedisStoreTest, Replacing) { CheckReplacing(*store_); }
TEST_F(RedisStoreTest, Deleting) { CheckDeleting(*store_); }
TEST_F(RedisStoreTest, Keys) { CheckKeys(*store_); }
TEST_F(RedisStoreTest, ConcurrentUse) { CheckConcurrentUse(*store_); }

TEST_F(RedisStoreTest, LeavesNothingBehind) {
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(3'000'000, 1)).ok());
  EXPECT_EQ(KeysOnServer(), 1 + 3);
  ASSERT_TRUE(PutState(*store_, "a", RandomBytes(1'500'000, 2)).ok());
  EXPECT_EQ(KeysOnServer(), 1 + 2);
  ASSERT_TRUE(store_->Delete("a").ok());
  EXPECT_EQ(KeysOnServer(), 0);
  {
    auto writer = store_->Put("b");
    ASSERT_TRUE(writer.ok());
    ASSERT_TRUE((*writer)->Append(RandomBytes(1'500'000, 3)).ok());
  }
  // What a dropped writer has sent goes away by itself; what was committed stays.
  EXPECT_EQ(KeysOnServer(), 1);
  Eval(
      "for _, k in ipairs(redis.call('KEYS', '*')) do "
      "assert(redis.call('TTL', k) > 3000 and redis.call('TTL', k) <= 3600) end return 1");
  ASSERT_TRUE(PutState(*store_, "c", {1, 2}).ok());
  Eval(
      "for _, k in ipairs(redis.call('KEYS', 'inlay:c*')) do "
      "assert(redis.call('TTL', k) == -1) end return 1");
}

TEST_F(RedisStoreTest, DamageOnTheServerIsFound) {
  const StateBytes bytes = RandomBytes(2'500'000, 1);
  const auto damaged = [&](absl::string_view script) {
    ASSERT_TRUE(PutState(*store_, "a", bytes).ok());
    ASSERT_NO_FATAL_FAILURE(Eval(script));
    const absl::Status status = GetState(*store_, "a").status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << script << " " << status;
  };
  const std::string chunks = "local c = redis.call('KEYS', 'inlay:a:*') table.sort(c) ";
  damaged(chunks + "redis.call('SETRANGE', c[2], 1000, 'x') return 1");
  damaged(chunks + "redis.call('APPEND', c[3], 'x') return 1");
  damaged(chunks + "redis.call('SET', c[1], '') return 1");
  damaged(chunks + "redis.call('DEL', c[3]) return 1");
  damaged(chunks +
          "local v = redis.call('GET', c[1]) "
          "redis.call('SET', c[1], redis.call('GET', c[2])) "
          "redis.call('SET', c[2], v) return 1");
  damaged("redis.call('SET', 'inlay:a', 'x') return 1");
  damaged("redis.call('SET', 'inlay:a', '') return 1");
  damaged("redis.call('SETRANGE', 'inlay:a', 16, 'xyz') return 1");
  // And it does not stand in the way of a new state.
  EXPECT_TRUE(PutState(*store_, "a", bytes).ok());
  ExpectState(*store_, "a", bytes);
}

TEST_F(RedisStoreTest, ErrorRepliesAreErrors) {
  Eval("redis.call('RPUSH', 'inlay:list', 'x') return 1");
  const absl::Status status = store_->Get("list").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << status;
  EXPECT_NE(status.message().find("WRONGTYPE"), absl::string_view::npos) << status;
}

TEST_F(RedisStoreTest, ChunkEvictedWhileWriting) {
  ASSERT_TRUE(PutState(*store_, "a", {7}).ok());
  auto writer = store_->Put("a");
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE((*writer)->Append(RandomBytes(1'500'000, 1)).ok());
  Eval(
      "for _, k in ipairs(redis.call('KEYS', 'inlay:a:*')) do "
      "if redis.call('TTL', k) > 0 then redis.call('DEL', k) end end return 1");
  EXPECT_EQ((*writer)->Commit().code(), absl::StatusCode::kDataLoss);
  ExpectState(*store_, "a", {7});
  // The chunk that was still there has been deleted.
  EXPECT_EQ(KeysOnServer(), 2);
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
  EXPECT_EQ(KeysOnServer(), 2);
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
  EXPECT_LT(absl::Now() - start, kPatience);
}

TEST_F(RedisStoreTest, ServerStopsAndGoesOn) {
  std::unique_ptr<StateStore> store = Open(server_.port(), kTimeout);
  ASSERT_TRUE(PutState(*store_, "a", {1, 2, 3}).ok());
  server_.Signal(SIGSTOP);
  const absl::Time start = absl::Now();
  EXPECT_EQ(store->Get("a").status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(PutState(*store, "a", RandomBytes(3'000'000, 1)).code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_LT(absl::Now() - start, kPatience);
  server_.Signal(SIGCONT);
  ExpectState(*store_, "a", {1, 2, 3});
}

TEST(RedisOptionsTest, Passwords) {
  RedisServer server({"--requirepass", "secret"});
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  const auto put = [&](absl::string_view user, absl::string_view password) {
    auto store = OpenRedisStore({.port = server.port(),
                                 .user = std::string(user),
                                 .password = std::string(password),
                                 .database = 3});
    return PutState(**store, "a", {1});
  };
  EXPECT_TRUE(put("", "secret").ok());
  EXPECT_TRUE(put("default", "secret").ok());
  EXPECT_EQ(put("", "wrong").code(), absl::StatusCode::kInternal);
  EXPECT_EQ(put("", "").code(), absl::StatusCode::kInternal);
}

TEST(RedisOptionsTest, Refused) {
  EXPECT_FALSE(OpenRedisStore({.host = ""}).ok());
  EXPECT_FALSE(OpenRedisStore({.port = 0}).ok());
  EXPECT_FALSE(OpenRedisStore({.database = -1}).ok());
  EXPECT_FALSE(OpenRedisStore({.timeout = absl::ZeroDuration()}).ok());
}

// Accepts connections one after the other and gives each to `serve`.
class EvilServer {
 public:
  explicit EvilServer(std::function<void(int fd, EvilServer&)> serve) {
    std::tie(listener_, port_) = BindLoopback();
    listen(listener_, 16);
    thread_ = std::thread([this, serve = std::move(serve)] {
      while (true) {
        const int fd = accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        if (!stopping_) serve(fd, *this);
        close(fd);
      }
    });
  }
  ~EvilServer() {
    stopping_ = true;
    shutdown(listener_, SHUT_RDWR);
    thread_.join();
    close(listener_);
  }
  uint16_t port() const { return port_; }
  bool stopping() const { return stopping_; }

  static bool Send(int fd, absl::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(n));
    }
    return true;
  }

  // Waits for a command, or at least a piece of one; false when the client has gone.
  static bool Receive(int fd) {
    char buffer[65536];
    return recv(fd, buffer, sizeof(buffer), 0) > 0;
  }

 private:
  int listener_ = -1;
  uint16_t port_ = 0;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

// Everything a store does fails, in time.
void ExpectFailures(uint16_t port, absl::string_view what) {
  std::unique_ptr<StateStore> store = Open(port, kTimeout);
  const auto timed = [&](const std::function<absl::Status()>& call) {
    const absl::Time start = absl::Now();
    const absl::Status status = call();
    EXPECT_FALSE(status.ok()) << what;
    EXPECT_LT(absl::Now() - start, kPatience) << what;
  };
  timed([&] { return PutState(*store, "a", RandomBytes(1'200'000, 1)); });
  timed([&] { return GetState(*store, "a").status(); });
  timed([&] { return store->Delete("a"); });
}

TEST(EvilServerTest, AnswersThatAreWrong) {
  const std::vector<std::string> answers = {
      "garbage\r\n",
      "+OK\r\n",
      ":1\r\n",
      ":99999999999999999999999999\r\n",
      "-ERR no\r\n",
      "$3\r\nabc\r\n",
      "$-7\r\n",
      "$99999999999\r\n",
      "$9223372036854775807\r\n",
      "$48\r\n" + std::string(48, '\0') + "\r\n",
      "*1000000000\r\n",
      "*-5\r\n",
      "*2147483647\r\n$1\r\na\r\n",
      "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n$1\r\na\r\n",
      ",1.5\r\n#t\r\n_\r\n",
      "$",
      "\r\n",
      std::string(1000, '\0'),
  };
  for (const std::string& answer : answers) {
    EvilServer server([&](int fd, EvilServer&) {
      while (EvilServer::Receive(fd) && EvilServer::Send(fd, answer)) continue;
    });
    ExpectFailures(server.port(), answer);
  }
}

// Two answers to one command: the second must not pass for the answer to the next one.
TEST(EvilServerTest, AnswersThatNobodyAskedFor) {
  EvilServer server([](int fd, EvilServer&) {
    if (EvilServer::Receive(fd)) EvilServer::Send(fd, "+OK\r\n:1\r\n");
    while (EvilServer::Receive(fd)) continue;
  });
  auto connection = RedisConnection::Connect({.port = server.port(), .timeout = kTimeout}, 1000);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ((*connection)->Command({"PING"}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*connection)->Command({"PERSIST", "a"}).status().code(), absl::StatusCode::kDataLoss);
}

TEST(EvilServerTest, HangsUpAtOnce) {
  EvilServer server([](int, EvilServer&) {});
  ExpectFailures(server.port(), "hangs up");
}

TEST(EvilServerTest, HangsUpInTheMiddleOfAnAnswer) {
  EvilServer server([](int fd, EvilServer&) {
    EvilServer::Receive(fd);
    EvilServer::Send(fd, "$100\r\nabc");
  });
  ExpectFailures(server.port(), "hangs up in the middle");
}

TEST(EvilServerTest, NeverAnswers) {
  EvilServer server([](int fd, EvilServer&) {
    while (EvilServer::Receive(fd)) continue;
  });
  ExpectFailures(server.port(), "never answers");
}

// Each byte in time, the answer never: the limit is on the command, not on the wait for a byte.
TEST(EvilServerTest, AnswersOneByteAtATime) {
  EvilServer server([](int fd, EvilServer& self) {
    EvilServer::Receive(fd);
    EvilServer::Send(fd, "$1000000\r\n");
    while (!self.stopping() && EvilServer::Send(fd, "a")) {
      absl::SleepFor(kTimeout / 10);
    }
  });
  ExpectFailures(server.port(), "one byte at a time");
}

TEST(EvilServerTest, NeverStopsSending) {
  EvilServer server([](int fd, EvilServer& self) {
    EvilServer::Receive(fd);
    const std::string much = "$99999999999\r\n" + std::string(1 << 20, 'a');
    while (!self.stopping() && EvilServer::Send(fd, much)) continue;
  });
  ExpectFailures(server.port(), "never stops");
}

TEST(EvilServerTest, RandomAnswers) {
  std::mt19937_64 random(1);
  const std::string alphabet = "$*+-:0123456789\r\n\r\nOKabc";
  for (int round = 0; round < 30; ++round) {
    std::string answer;
    for (size_t n = random() % 60; n > 0; --n) answer += alphabet[random() % alphabet.size()];
    EvilServer server([&](int fd, EvilServer&) {
      if (EvilServer::Receive(fd)) EvilServer::Send(fd, answer);
    });
    ExpectFailures(server.port(), answer);
  }
}

TEST(EvilServerTest, NobodyListens) {
  const auto [fd, port] = BindLoopback();
  ExpectFailures(port, "nobody listens");
  close(fd);
}

}  // namespace
}  // namespace inlay
