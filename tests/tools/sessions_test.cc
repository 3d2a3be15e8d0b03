// inlay serve --sessions: conversations outlive a server that is killed at any moment.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "io/store/state_store_redis.h"
#include "nlohmann/json.hpp"
#include "tests/io/store/loopback.h"
#include "tests/io/store/redis_cluster.h"
#include "tests/io/store/redis_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using nlohmann::json;
using serve::RawClient;
using serve::RawReply;
using testing::HasSubstr;

constexpr int kTurns = 30;
constexpr int kTurnsOfALife = 4;  // asked of a server before it is killed, at most

RawReply AskSessions(uint16_t port, const std::string& method, const std::string& path,
                     const std::string& body = "") {
  RawClient client(port);
  if (!client.connected()) return {};
  client.Send(absl::StrCat(method, " ", path,
                           " HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                           "Content-Type: application/json\r\nContent-Length: ",
                           body.size(), "\r\n\r\n", body));
  return client.Read();
}

// The arguments of a server with these sessions.
std::vector<std::string> With(const std::string& sessions) {
  return {"-m", "models/bard.gguf", "--chat-template", "chatml", "-c", "2048", "--cache-limit",
          "64", "--sessions",       sessions};
}

json TurnBody(int i) {
  return {{"parent", i},
          {"content", absl::StrCat("Line ", i)},
          {"seed", i},
          {"max_tokens", 6},
          {"idempotency_key", absl::StrCat("key ", i)}};
}

// What clients know of the session's answers after a server that nobody disturbs.
std::vector<json> UndisturbedAnswers() {
  std::vector<json> answers;
  const ServerProcess server(With("memory"));
  AskSessions(server.port(), "POST", "/v1/sessions", R"({"name": "talk"})");
  for (int i = 0; i < kTurns; ++i) {
    const RawReply reply =
        AskSessions(server.port(), "POST", "/v1/sessions/talk/turns", TurnBody(i).dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    answers.push_back(json::parse(reply.body, nullptr, false)["message"]);
  }
  return answers;
}

// The session holds each answer that was acknowledged, at most the one that was being
// acknowledged besides, and nothing else. Returns how many.
int CheckSession(uint16_t port, const std::vector<json>& acknowledged) {
  const RawReply reply = AskSessions(port, "GET", "/v1/sessions/talk");
  EXPECT_EQ(reply.status, 200) << reply.body;
  const json session = json::parse(reply.body, nullptr, false);
  const size_t turns = session["turns"].size();
  EXPECT_GE(turns, acknowledged.size());
  EXPECT_LE(turns, acknowledged.size() + 1);
  EXPECT_EQ(session["version"], turns);
  for (size_t i = 0; i < std::min(turns, acknowledged.size()); ++i)
    EXPECT_EQ(session["turns"][i]["message"], acknowledged[i]) << i;
  return static_cast<int>(turns);
}

// The file of the one session there is; 0 when there is none.
ino_t SessionFile(const std::string& folder) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    struct stat info;
    if (entry.path().extension() == ".state" && stat(entry.path().c_str(), &info) == 0)
      return info.st_ino;
  }
  return 0;
}

// Kills the process at a random moment, or as soon as a random number of turns was stored: most
// often before the last one's reply was sent. At the latest when no more turns are asked for.
void KillSometime(const std::string& folder, pid_t pid, std::mt19937& random,
                  const std::atomic<bool>& is_last) {
  if (random() % 2 == 0) {
    for (size_t stores = 1 + random() % 4; stores > 0; --stores) {
      const ino_t file = SessionFile(folder);
      while (SessionFile(folder) == file && !is_last) continue;
    }
  } else {
    absl::SleepFor(absl::Milliseconds(random() % 300));
  }
  kill(pid, SIGKILL);
}

TEST(Sessions, OutliveAServerThatIsKilled) {
  const std::vector<json> expected = UndisturbedAnswers();
  ASSERT_EQ(expected.size(), static_cast<size_t>(kTurns));
  std::mt19937 random(1);
  int kills = 0, cut = 0, unheard = 0;
  // Until some server was killed while a turn was asked of it.
  while (cut == 0 && !testing::Test::HasFailure()) {
    const TempFolder folder;
    std::vector<json> acknowledged;
    while (static_cast<int>(acknowledged.size()) < kTurns && !testing::Test::HasFailure()) {
      const ServerProcess server(With(folder.path()));
      const uint16_t port = server.port();
      if (AskSessions(port, "GET", "/v1/sessions/talk").status == 404) {
        EXPECT_EQ(AskSessions(port, "POST", "/v1/sessions", R"({"name": "talk"})").status, 200);
      }
      const int there = CheckSession(port, acknowledged);
      unheard += there - static_cast<int>(acknowledged.size());
      std::atomic<bool> is_last = false;
      std::thread killer([&] { KillSometime(folder.path(), server.pid(), random, is_last); });
      // The turn whose reply did not come is asked for again, with its key.
      for (int turns = 0; turns < kTurnsOfALife && std::ssize(acknowledged) < kTurns; ++turns) {
        const int i = static_cast<int>(acknowledged.size());
        const RawReply reply =
            AskSessions(port, "POST", "/v1/sessions/talk/turns", TurnBody(i).dump());
        if (!reply.whole) {
          ++cut;
          break;
        }
        EXPECT_EQ(reply.status, 200) << reply.body;
        if (reply.status != 200) break;
        acknowledged.push_back(json::parse(reply.body, nullptr, false)["message"]);
        EXPECT_EQ(acknowledged.back(), expected[static_cast<size_t>(i)]) << i;
      }
      is_last = true;
      killer.join();
      ++kills;
    }
    EXPECT_EQ(acknowledged, expected);
    const ServerProcess server(With(folder.path()));
    EXPECT_EQ(CheckSession(server.port(), acknowledged), kTurns);
  }
  std::printf("killed %d times, %d times in a turn; %d turns were stored but not replied\n", kills,
              cut, unheard);
}

TEST(Sessions, OnRedis) {
  const RedisServer redis;
  const std::string place = absl::StrCat("redis://127.0.0.1:", redis.port(), "/3");
  // Of the state, which is a hash, and not of the index of states beside it.
  const auto ttl = [&redis] {
    const std::string reply = redis.Ask(
        {"SELECT 3",
         "EVAL \"for _, key in ipairs(redis.call('KEYS', '*')) do "
         "if redis.call('TYPE', key).ok == 'hash' then return redis.call('TTL', key) end end\" 0"});
    return std::stoi(reply.substr(reply.find(':') + 1));
  };
  if (OpenRedisStore({}).status().code() == absl::StatusCode::kUnimplemented) GTEST_SKIP();
  ASSERT_TRUE(redis.started());
  json answer;
  {
    const ServerProcess first(With(place));
    const uint16_t port = first.port();
    EXPECT_EQ(AskSessions(port, "POST", "/v1/sessions", R"({"name": "talk"})").status, 200);
    const RawReply reply = AskSessions(port, "POST", "/v1/sessions/talk/turns", TurnBody(0).dump());
    EXPECT_EQ(reply.status, 200) << reply.body;
    answer = json::parse(reply.body, nullptr, false);
  }
  EXPECT_EQ(ttl(), -1);
  std::vector<std::string> expiring = With(place);
  expiring.insert(expiring.end(), {"--sessions-ttl", "500"});
  const ServerProcess second(expiring);
  const uint16_t port = second.port();
  EXPECT_EQ(CheckSession(port, {answer["message"]}), 1);
  EXPECT_GT(ttl(), 400) << "it was read";
  EXPECT_THAT(AskSessions(port, "GET", "/v1/sessions").body, HasSubstr("\"talk\""));
  EXPECT_EQ(AskSessions(port, "POST", "/v1/sessions/talk/turns", TurnBody(1).dump()).status, 200);
  EXPECT_GT(ttl(), 400);
  EXPECT_LE(ttl(), 500);
  const RawReply again = AskSessions(port, "POST", "/v1/sessions/talk/turns", TurnBody(0).dump());
  EXPECT_EQ(json::parse(again.body, nullptr, false), answer);
  EXPECT_THAT(AskSessions(port, "GET", "/v1/sessions").body, HasSubstr("\"talk\""));
  EXPECT_EQ(AskSessions(port, "DELETE", "/v1/sessions/talk").status, 200);
  EXPECT_EQ(AskSessions(port, "GET", "/v1/sessions/talk").status, 404);
}

TEST(Sessions, NotOnANodeOfAClusterThatHasNotAllSlots) {
  if (OpenRedisStore({}).status().code() == absl::StatusCode::kUnimplemented) GTEST_SKIP();
  const ClusterNode one, other;
  ASSERT_TRUE(one.started() && other.started());
  one.GiveSlots(0, 12000);
  other.GiveSlots(12001, 16383);
  one.Meet(other);
  one.WaitForSlots();
  ExpectError(RunProgram({"serve", "--port", "0", "--sessions",
                          absl::StrCat("redis://127.0.0.1:", one.port())}),
              1, HasSubstr(absl::StrCat("is at 127.0.0.1:", other.port())));
}

// Else each request that stores something would fail, and nothing would say why.
TEST(Sessions, ARightThatIsMissingOnRedisIsToldAtTheStart) {
  if (OpenRedisStore({}).status().code() == absl::StatusCode::kUnimplemented) GTEST_SKIP();
  const RedisServer redis({"--user", "inlay", "on", ">secret", "~*", "+@all", "-pexpire"});
  ASSERT_TRUE(redis.started());
  ExpectError(RunProgram({"serve", "--port", "0", "--sessions",
                          absl::StrCat("redis://inlay:secret@127.0.0.1:", redis.port()),
                          "--sessions-ttl", "60"}),
              1, HasSubstr("no right to run PEXPIRE"));
}

// Two servers would overwrite each other's turns.
TEST(Sessions, AFolderIsOneServers) {
  const TempFolder folder;
  ServerProcess server(With(folder.path()));
  ExpectError(RunProgram({"serve", "--port", "0", "--sessions", folder.path()}), 1,
              HasSubstr("server"));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

// The time of a session's file tells the next server when it was last used.
TEST(Sessions, ThatNobodyUsesAreRemoved) {
  namespace fs = std::filesystem;
  const TempFolder folder;
  std::vector<std::string> arguments = With(folder.path());
  arguments.insert(arguments.end(), {"--sessions-ttl", "3600"});
  {
    ServerProcess server(arguments);
    for (const char* body : {R"({"name": "old"})", R"({"name": "new"})"})
      EXPECT_EQ(AskSessions(server.port(), "POST", "/v1/sessions", body).status, 200);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0) << server.err();
  }
  for (const auto& entry : fs::directory_iterator(folder.path())) {
    if (!entry.path().string().ends_with(".old.state")) continue;
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  const ServerProcess server(arguments);
  // It begins to look for them when it has started; a list is no use of one.
  std::string list;
  EXPECT_TRUE(WaitUntil([&] {
    list = AskSessions(server.port(), "GET", "/v1/sessions").body;
    return list.find("old") == std::string::npos;
  }));
  EXPECT_THAT(list, HasSubstr("\"new\""));
}

TEST(Sessions, PlacesThatAreNone) {
  const auto refused = [](const std::string& place, int status, const std::string& why) {
    ExpectError(RunProgram({"serve", "--port", "0", "--sessions", place}), status, HasSubstr(why));
  };
  refused("/nowhere/at/all", 2, "no existing folder, and neither redis://HOST nor memory");
  refused("models/bard.gguf", 2, "no existing folder");
  refused("redis://", 2, "the host is missing");
  refused("redis://host:0", 2, "the port");
  refused("redis://host:99999", 2, "the port");
  refused("redis://host:x", 2, "the port");
  refused("redis://host/x", 2, "the database");
  refused("redis://secret@host", 2, "[USER]:PASSWORD");
  refused("redis://a:%zz@host", 2, "hexadecimal");
  refused("redis://[::1", 2, "no ]");
  refused("redis://::1", 2, "an address of IPv6 is written [::1]");
  // Nobody listens there, and nobody else can begin to.
  const auto [fd, port] = BindLoopback();
  refused(absl::StrCat("redis://:secret@127.0.0.1:", port), 1, "cannot be reached");
  close(fd);
  // Where others do not see it.
  ExpectError(
      RunProgram({"serve", "--port", "0"}, {.env = {{"INLAY_SESSIONS", "redis://secret@host"}}}), 2,
      HasSubstr("[USER]:PASSWORD"));
  const ProgramResult result = RunProgram({"serve", "--sessions", "redis://a:secret@h:x"});
  EXPECT_THAT(result.err, testing::Not(HasSubstr("secret")));
}

// Those of the command line, too: generate --session, and chats that are kept and saved.
TEST(SessionsOfTheCommandLine, GoOnFromRedis) {
  const RedisServer redis;
  ASSERT_TRUE(redis.started());
  const std::string address = absl::StrCat("redis://127.0.0.1:", redis.port());
  const auto generate = [&](const std::string& prompt, const std::string& tokens,
                            std::vector<std::string> more) {
    more.insert(more.begin(), {"generate", prompt, "-n", tokens, "-s", "3", "--no-echo"});
    const ProgramResult result = RunProgram(more);
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  };
  const std::string file = TempPath("session");
  for (const char* prompt : {"ROMEO:\n", "JULIET:\n"}) {
    EXPECT_EQ(generate(prompt, "8", {"--store", address, "--session", "play"}),
              generate(prompt, "8", {"--session", file}));
  }
  const auto chat = [&](const std::string& input, std::vector<std::string> more) {
    more.insert(more.begin(), {"chat", "-n", "8", "-s", "1", "--store", address});
    return RunProgram(more, {.input = input});
  };
  EXPECT_EQ(chat("ROMEO:\n/save play2\n", {"--autosave"}).status, 0);
  EXPECT_THAT(chat("/stats\n", {"--continue"}).err, HasSubstr("turns: 1;"));
  EXPECT_THAT(chat("/load play2\n/stats\n", {}).err, HasSubstr("turns: 1;"));
}

}  // namespace
}  // namespace inlay
