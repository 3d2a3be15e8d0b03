// What servers of several kinds and users of several rights make of the options of a store.
#include "io/store/redis_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/store/state_store_redis.h"
#include "tests/io/store/open_redis.h"
#include "tests/io/store/redis_cluster.h"
#include "tests/io/store/redis_server.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/must.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

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
  EXPECT_EQ(put("", "wrong").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(put("nobody", "secret").code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(put("", "").code(), absl::StatusCode::kUnauthenticated);
  const auto outside =
      OpenRedisStore({.port = server.port(), .password = "secret", .database = 99});
  EXPECT_EQ((*outside)->Get("a").status().code(), absl::StatusCode::kInvalidArgument);
}

// The user of docs/replicas.md.
const std::vector<std::string>& FewRights() {
  static const auto& arguments = *new std::vector<std::string>{
      "--user", "inlay",    "on",           ">secret",   "~inlay:*", "~{inlay:*", "resetchannels",
      "-@all",  "+type",    "+hget",        "+unlink",   "+eval",    "+hset",     "+expire",
      "+hlen",  "+persist", "+pexpire",     "+rename",   "+scan",    "+hexists",  "+zadd",
      "+zrem",  "+zscore",  "+zrangebylex", "+zlexcount"};
  return arguments;
}

// As docs/replicas.md sets a server up, with no other user and its log synced before each reply:
// what was acknowledged is there after it was killed.
TEST(RedisOptionsTest, StatesOutliveAServerThatIsKilled) {
  const TempFolder folder;
  std::vector<std::string> arguments = {"--dir", folder.path(),   "--appendonly",
                                        "yes",   "--appendfsync", "always"};
  arguments.insert(arguments.end(), FewRights().begin(), FewRights().end());
  // The rights are for the log, which Redis 7.0 reads as the default user.
  arguments.insert(arguments.end(), {"--user", "default", "off", "~*", "&*", "+@all"});
  for (uint8_t life = 0; life < 3; ++life) {
    RedisServer server(arguments);
    ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
    const auto store =
        OpenRedisStore({.port = server.port(), .user = "inlay", .password = "secret"});
    ASSERT_TRUE(store.ok());
    // It may still be reading its log.
    EXPECT_TRUE(WaitUntil([&] { return !absl::IsUnavailable((*store)->List("").status()); }));
    EXPECT_EQ(ListStates(**store, "").size(), life);
    for (uint8_t before = 0; before < life; ++before)
      ExpectState(**store, absl::StrCat("life-", before), RandomBytes(1'200'000, before));
    ASSERT_TRUE(PutState(**store, absl::StrCat("life-", life), RandomBytes(1'200'000, life)).ok());
    const auto stranger = OpenRedisStore({.port = server.port()});
    ASSERT_TRUE(stranger.ok());
    EXPECT_EQ((*stranger)->List("").status().code(), absl::StatusCode::kUnauthenticated);
    server.Kill();
  }
}

// The rights are enough, and nothing else is reached with them.
TEST(RedisOptionsTest, AUserWithFewRights) {
  RedisServer server(FewRights());
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  RedisOptions options = {.port = server.port(), .user = "inlay", .password = "secret"};
  const auto store = OpenRedisStore(options);
  ASSERT_TRUE(store.ok());
  options.expiry = absl::Hours(1);
  EXPECT_TRUE(PutState(**OpenRedisStore(options), "expires", {1}).ok());
  CheckTags(**store, **store);
  CheckReplacing(**store);
  EXPECT_EQ(ListStates(**store, "t"), std::vector<std::string>{"tagged"});
  RedisOptions elsewhere = options;
  elsewhere.prefix = "other:";
  EXPECT_EQ(PutState(**OpenRedisStore(elsewhere), "a", {1}).code(),
            absl::StatusCode::kPermissionDenied);
}

// A right that is missing is told at the start, not with the first session.
TEST(RedisOptionsTest, RightsAreChecked) {
  RedisServer server(FewRights());
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  const RedisOptions stays = {.port = server.port(), .user = "inlay", .password = "secret"};
  RedisOptions expires = stays;
  expires.expiry = absl::Hours(1);
  const auto right = [&](char sign, absl::string_view command) {
    EXPECT_THAT(server.Ask({absl::StrCat("ACL SETUSER inlay ", std::string(1, sign), command)}),
                HasSubstr("+OK"));
  };
  EXPECT_EQ(CheckRedisRights(stays), absl::OkStatus());
  EXPECT_EQ(CheckRedisRights(expires), absl::OkStatus());
  for (const char* command : {"type", "hget", "unlink", "eval", "hset", "expire", "hlen", "persist",
                              "pexpire", "rename", "scan", "hexists"}) {
    right('-', command);
    const bool needed_to_stay = command != absl::string_view("pexpire");
    const bool needed_to_expire = command != absl::string_view("persist");
    for (const auto& [options, needed] :
         {std::pair(stays, needed_to_stay), std::pair(expires, needed_to_expire)}) {
      const absl::Status status = CheckRedisRights(options);
      EXPECT_EQ(absl::IsPermissionDenied(status), needed) << command << ": " << status;
      EXPECT_EQ(status.ok(), !needed) << command << ": " << status;
      if (needed) {
        EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("no right to run ",
                                                             absl::AsciiStrToUpper(command), ":")));
      }
    }
    right('+', command);
  }
  EXPECT_EQ(CheckRedisRights(expires), absl::OkStatus());
  EXPECT_THAT(server.Ask({"DBSIZE"}), HasSubstr(":0")) << "something was left behind";
  EXPECT_FALSE(CheckRedisRights({.port = server.port(), .user = "inlay", .password = "no"}).ok());
}

// The user of docs/replicas.md before there was an index: it has no part in it, and loses nothing.
TEST(RedisOptionsTest, AUserWithoutRightsToTheIndex) {
  std::vector<std::string> arguments = FewRights();
  std::erase_if(arguments, [](const std::string& word) { return absl::StartsWith(word, "+z"); });
  RedisServer server(arguments);
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  const auto few =
      Must(OpenRedisStore({.port = server.port(), .user = "inlay", .password = "secret"}));
  const auto all = OpenRedis(server.port());
  ASSERT_TRUE(PutState(*few, "a.1", {1}).ok());
  EXPECT_EQ(CountStates(*few, "a."), 1u);
  EXPECT_EQ(CountStates(*all, "a."), 1u);  // which makes an index
  ASSERT_TRUE(PutState(*few, "a.2", {1}).ok());
  EXPECT_EQ(ListStates(*few, "a."), (std::vector<std::string>{"a.1", "a.2"}));
  EXPECT_EQ(ListStates(*all, "a."), (std::vector<std::string>{"a.1", "a.2"}));
  ASSERT_TRUE(few->Delete("a.1").ok());
  EXPECT_EQ(ListStates(*all, "a."), std::vector<std::string>{"a.2"});
  EXPECT_EQ(CountStates(*few, "a."), 1u);
}

// A cluster refuses commands and scripts whose keys are in several slots.
TEST(RedisOptionsTest, AServerOfACluster) {
  const ClusterNode server;
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  server.GiveSlots(0, 16383);
  server.WaitForSlots();
  for (const char* prefix : {"inlay:", "{inlay}:"}) {
    const auto store = OpenRedisStore({.port = server.port(), .prefix = prefix});
    ASSERT_TRUE(store.ok());
    CheckTags(**store, **store);
    CheckReplacing(**store);
    EXPECT_EQ(ListStates(**store, "t"), std::vector<std::string>{"tagged"});
    CheckDeleting(**store);
    ASSERT_TRUE(PutState(**store, "t2", {1}).ok());
    EXPECT_EQ(ListStates(**store, "t"), (std::vector<std::string>{"t2", "tagged"}));
    EXPECT_EQ(CountStates(**store, "t"), 2u);
    ASSERT_TRUE((*store)->Delete("t2").ok());
    EXPECT_EQ(CountStates(**store, "t"), 1u);
  }
}

// Of two nodes each tells where the other's keys are. Redirections are not followed.
TEST(RedisOptionsTest, ANodeOfAClusterThatHasNotAllSlots) {
  const ClusterNode nodes[2];
  for (int i : {0, 1}) {
    ASSERT_TRUE(nodes[i].started()) << "redis-server cannot be started (scripts/setup installs it)";
    nodes[i].GiveSlots(8192 * i, 8192 * i + 8191);
  }
  nodes[0].Meet(nodes[1]);
  for (int i : {0, 1}) {
    nodes[i].WaitForSlots();
    const auto store = OpenRedis(nodes[i].port());
    int own = 0, other = 0;
    for (int key = 0; key < 40; ++key) {
      const absl::Status status = PutState(*store, absl::StrCat("key-", key), {1});
      if (status.ok()) {
        ++own;
        ExpectState(*store, absl::StrCat("key-", key), {1});
        continue;
      }
      ++other;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
      EXPECT_THAT(
          std::string(status.message()),
          HasSubstr(absl::StrCat("127.0.0.1:", nodes[i].port(), " is a node of a cluster")));
      EXPECT_THAT(std::string(status.message()),
                  HasSubstr(absl::StrCat(" is at 127.0.0.1:", nodes[1 - i].port(), ". That is")));
    }
    EXPECT_GT(own, 0);
    EXPECT_GT(other, 0);
  }
}

TEST(RedisOptionsTest, APasswordThatTheServerDoesNotWant) {
  RedisServer server;
  ASSERT_TRUE(server.started()) << "redis-server cannot be started (scripts/setup installs it)";
  const auto store = OpenRedisStore({.port = server.port(), .password = "secret"});
  EXPECT_EQ((*store)->Get("a").status().code(), absl::StatusCode::kUnauthenticated);
}

TEST(RedisOptionsTest, Refused) {
  EXPECT_FALSE(OpenRedisStore({.host = ""}).ok());
  EXPECT_FALSE(OpenRedisStore({.port = 0}).ok());
  EXPECT_FALSE(OpenRedisStore({.database = -1}).ok());
  EXPECT_FALSE(OpenRedisStore({.timeout = absl::ZeroDuration()}).ok());
}

}  // namespace
}  // namespace inlay
