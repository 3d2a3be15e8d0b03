// What servers that lie, hang or never stop can do to a store: an error, in time.
#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netdb.h>
#include <sys/resource.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/store/redis_connection.h"
#include "io/store/redis_connections.h"
#include "io/store/state_store_redis.h"
#include "tests/io/store/evil_server.h"
#include "tests/io/store/loopback.h"
#include "tests/io/store/open_redis.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/must.h"

// The name of 127.0.0.2 and 127.0.0.1, in this order, without a name server.
constexpr char kTwoAddresses[] = "two-addresses.test";

extern "C" int getaddrinfo(const char* host, const char* service, const addrinfo* hints,
                           addrinfo** list) {
  static const auto next =
      reinterpret_cast<decltype(&getaddrinfo)>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (host == nullptr || absl::string_view(host) != kTwoAddresses)
    return next(host, service, hints, list);
  if (const int error = next("127.0.0.2", service, hints, list); error != 0) return error;
  return next("127.0.0.1", service, hints, &(*list)->ai_next);
}

namespace inlay {
namespace {

// Everything a store does fails, in time.
void ExpectFailures(uint16_t port, absl::string_view what) {
  std::unique_ptr<StateStore> store = OpenRedis(port, kRedisTimeout);
  const auto timed = [&](const std::function<absl::Status()>& call) {
    const absl::Time start = absl::Now();
    const absl::Status status = call();
    EXPECT_FALSE(status.ok()) << what;
    EXPECT_LT(absl::Now() - start, kRedisPatience) << what;
  };
  timed([&] { return PutState(*store, "a", RandomBytes(1'200'000, 1)); });
  timed([&] { return GetState(*store, "a").status(); });
  timed([&] { return store->ReadBeginning("a", 100).status(); });
  timed([&] { return store->Delete("a"); });
  timed([&] { return store->List("a").status(); });
  // A number may be the right answer to this alone.
  if (!absl::StartsWith(what, ":")) timed([&] { return store->Count("a").status(); });
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
      "$1\r\n7\r\n",
      "$7\r\nafter a\r\n",
      std::string(1000, '\0'),
  };
  for (const std::string& answer : answers) {
    EvilServer server([&](int fd, EvilServer&) {
      while (EvilServer::Receive(fd) && EvilServer::Send(fd, answer)) continue;
    });
    ExpectFailures(server.port(), answer);
  }
}

// There is no index, and then a search that never ends.
TEST(EvilServerTest, ASearchWithoutAnEnd) {
  for (const char* none : {"$4\r\nnone\r\n", ":-1\r\n", "-ERR no\r\n"}) {
    EvilServer server([&](int fd, EvilServer&) {
      std::string answer = none;
      while (EvilServer::Receive(fd) && EvilServer::Send(fd, answer)) answer = "$1\r\n7\r\n";
    });
    ExpectFailures(server.port(), absl::StrCat("after ", none));
  }
}

// Two answers to one command: the second must not pass for the answer to the next one.
TEST(EvilServerTest, AnswersThatNobodyAskedFor) {
  EvilServer server([](int fd, EvilServer&) {
    if (EvilServer::Receive(fd)) EvilServer::Send(fd, "+OK\r\n:1\r\n");
    while (EvilServer::Receive(fd)) continue;
  });
  auto connection =
      RedisConnection::Connect({.port = server.port(), .timeout = absl::Minutes(1)}, 1000);
  ASSERT_TRUE(connection.ok());
  EXPECT_EQ((*connection)->Command({"PING"}).status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ((*connection)->Command({"PERSIST", "a"}).status().code(), absl::StatusCode::kDataLoss);
}

// A connection whose replies have got out of step would give one user what another one has stored.
TEST(EvilServerTest, AConnectionThatAnswersPingWithAnotherReplyIsNotUsedAgain) {
  bool first = true;
  EvilServer server([&](int fd, EvilServer&) {
    const char* answer = std::exchange(first, false) ? "$5\r\nstale\r\n" : "$5\r\nfresh\r\n";
    while (EvilServer::Receive(fd) && EvilServer::Send(fd, answer)) continue;
  });
  RedisConnections connections({.port = server.port(), .timeout = absl::Minutes(1)}, 1000);
  for (const char* answer : {"stale", "fresh"}) {
    const RedisConnections::Lease connection = Must(connections.Get());
    EXPECT_EQ(Must(connection->Command({"GET", "a"})).text, answer);
  }
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
      absl::SleepFor(kRedisTimeout / 10);
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

// A host whose first address does not answer is reached at its second.
TEST(EvilServerTest, EachAddressGetsAShareOfTheTime) {
  const auto [listener, port] = BindLoopback();
  ASSERT_EQ(listen(listener, 4), 0);
  sockaddr_in address = LoopbackAddress(port);
  ASSERT_EQ(inet_pton(AF_INET, "127.0.0.2", &address.sin_addr), 1);
  const auto* const silent = reinterpret_cast<const sockaddr*>(&address);
  const int full = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (bind(full, silent, sizeof(address)) != 0) {
    close(full);
    close(listener);
    GTEST_SKIP() << "this system has no address 127.0.0.2";
  }
  // Its queue of connections is full, so that further ones wait.
  ASSERT_EQ(listen(full, 0), 0);
  std::vector<int> waiting;
  for (int i = 0; i < 4; ++i) {
    waiting.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    connect(waiting.back(), silent, sizeof(address));
  }
  const RedisOptions options = {.host = kTwoAddresses, .port = port, .timeout = absl::Seconds(2)};
  EXPECT_EQ(RedisConnection::Connect(options, 1000).status(), absl::OkStatus());
  for (const int fd : waiting) close(fd);
  close(full);
  close(listener);
}

TEST(EvilServerTest, TellsThatThereIsNoDescriptor) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status status = RedisConnection::Connect({.host = "127.0.0.1"}, 1000).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "cannot be reached: Too many open files"))
      << status;
}

TEST(EvilServerTest, NobodyListens) {
  const auto [fd, port] = BindLoopback();
  ExpectFailures(port, "nobody listens");
  close(fd);
}

}  // namespace
}  // namespace inlay
