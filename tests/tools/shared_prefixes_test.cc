// Two servers on the loopback interface that share prefixes on Redis, as their clients see them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <regex>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/store/open_snapshot_store.h"
#include "nlohmann/json.hpp"
#include "tests/io/store/redis_server.h"
#include "tests/serve/http/raw_client.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using serve::Get;
using serve::RawClient;
using serve::RawReply;
using ::testing::HasSubstr;
using Json = nlohmann::json;

Json Ask(uint16_t port, const std::string& path, const Json& body, const std::string& key = "") {
  const std::string text = body.dump();
  RawClient client(port);
  EXPECT_TRUE(client.Send(absl::StrCat(
      "POST ", path, " HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n",
      key.empty() ? "" : absl::StrCat("x-api-key: ", key, "\r\n"), "Content-Length: ", text.size(),
      "\r\n\r\n", text)));
  const RawReply reply = client.Read();
  EXPECT_EQ(reply.status, 200) << reply.body;
  return Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
}

// A figure of /metrics.
double Metric(uint16_t port, const std::string& name, const std::string& key = "") {
  const std::string page =
      Get(port, "/metrics", key.empty() ? "" : absl::StrCat("x-api-key: ", key, "\r\n")).body;
  std::smatch match;
  if (!std::regex_search(page, match, std::regex("\ninlay_" + name + " ([0-9.e+]+)\n"))) return -1;
  return std::stod(match[1]);
}

// Until the figure is at least this.
void WaitFor(uint16_t port, const std::string& name, double least, const std::string& key = "") {
  EXPECT_TRUE(WaitUntil([&] { return Metric(port, name, key) >= least; })) << name;
}

Json Completion(const std::string& prompt) {
  return {{"prompt", prompt}, {"max_tokens", 12}, {"seed", 5}, {"temperature", 1}};
}

std::string LongText(int lines) {
  std::string text;
  for (int i = 0; i < lines; ++i) absl::StrAppend(&text, "Now is line ", i * 77 % 1000, ".\n");
  return text;
}

class SharedPrefixesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (absl::IsUnimplemented(OpenSnapshotStore({}).status())) GTEST_SKIP();
    ASSERT_TRUE(redis_.started())
        << "redis-server cannot be started: install the package redis-server (scripts/setup)";
  }

  std::vector<std::string> Shared(std::vector<std::string> more = {}) const {
    std::vector<std::string> all = {"-m",
                                    "models/bard.gguf",
                                    "-t",
                                    "1",
                                    "--chat-template",
                                    "chatml",
                                    "--shared-prefixes",
                                    absl::StrCat("redis://127.0.0.1:", redis_.port()),
                                    "--shared-prefixes-wait",
                                    "60000",
                                    "--shared-prefixes-min",
                                    "64"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  RedisServer redis_;
};

TEST_F(SharedPrefixesTest, APromptThatAnotherServerHasComputedIsNotComputedAgain) {
  const ServerProcess one(Shared()), other(Shared());
  const ServerProcess alone({"-m", "models/bard.gguf", "-t", "1", "--chat-template", "chatml"});
  for (const uint16_t port : {one.port(), other.port()}) WaitFor(port, "shared_prefixes_up", 1);
  EXPECT_EQ(Metric(alone.port(), "shared_prefixes_up"), -1) << "it shares none";
  const std::string text = LongText(20);

  const Json expected = Ask(alone.port(), "/v1/completions", Completion(text));
  const Json first = Ask(one.port(), "/v1/completions", Completion(text));
  EXPECT_EQ(first["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
  WaitFor(one.port(), "shared_prefix_stored_total", 1);
  WaitFor(one.port(), "shared_prefixes_up", 1);
  const Json second = Ask(other.port(), "/v1/completions", Completion(text));
  const int prompt = expected["usage"]["prompt_tokens"];
  EXPECT_EQ(first["choices"], expected["choices"]);
  EXPECT_EQ(second["choices"], expected["choices"]);
  EXPECT_EQ(second["usage"]["prompt_tokens_details"]["cached_tokens"], prompt - 1);
  EXPECT_EQ(Metric(other.port(), "shared_prefix_hits_total"), 1);
  EXPECT_EQ(Metric(other.port(), "shared_prefix_tokens_total"), prompt - 1);
  EXPECT_EQ(Metric(other.port(), "cached_tokens_total"), prompt - 1);
  EXPECT_EQ(Metric(other.port(), "computed_tokens_total"), 1);
  EXPECT_GT(Metric(other.port(), "shared_prefix_fetched_bytes_total"), 0);
  EXPECT_EQ(Metric(one.port(), "shared_prefix_hits_total"), 0);

  // A chat that goes on elsewhere.
  Json chat = {{"messages", {{{"role", "user"}, {"content", text}}}}, {"seed", 1}};
  chat["max_tokens"] = 10;
  const Json said = Ask(one.port(), "/v1/chat/completions", chat);
  const double stored = Metric(one.port(), "shared_prefix_stored_total");
  EXPECT_GE(stored, 1);
  EXPECT_TRUE(WaitUntil([&] { return Metric(one.port(), "shared_prefixes_waiting") == 0; }));
  chat["messages"].push_back(said["choices"][0]["message"]);
  chat["messages"].push_back({{"role", "user"}, {"content", "Go on."}});
  const Json more = Ask(other.port(), "/v1/chat/completions", chat);
  EXPECT_EQ(more["choices"], Ask(alone.port(), "/v1/chat/completions", chat)["choices"]);
  EXPECT_GT(more["usage"]["prompt_tokens_details"]["cached_tokens"], 100);
  EXPECT_EQ(Metric(other.port(), "shared_prefix_hits_total"), 2);
}

// Clients whose keys have other names share nothing, unless the servers say so.
TEST_F(SharedPrefixesTest, BelongToAKeyUnlessTheyAreShared) {
  const std::string file = ScratchPath("keys");
  WriteFile(file, "alices-key alice\nbobs-key-here bob\n");
  for (const bool share : {false, true}) {
    std::vector<std::string> more = {"--api-key-file", file};
    if (share) more.push_back("--share-prefixes");
    const ServerProcess one(Shared(more)), other(Shared(more));
    const std::string text = LongText(share ? 22 : 25), alice = "alices-key", bob = "bobs-key-here";
    for (const uint16_t port : {one.port(), other.port()})
      WaitFor(port, "shared_prefixes_up", 1, alice);
    Ask(one.port(), "/v1/completions", Completion(text), alice);
    WaitFor(one.port(), "shared_prefix_stored_total", 1, alice);
    Ask(other.port(), "/v1/completions", Completion(text), bob);
    EXPECT_EQ(Metric(other.port(), "shared_prefix_hits_total", bob), share ? 1 : 0);
    Ask(other.port(), "/v1/completions", Completion(text), alice);
    EXPECT_EQ(Metric(other.port(), "shared_prefix_hits_total", bob), 1);
  }
}

// Other bits are not taken.
TEST_F(SharedPrefixesTest, AServerOfAnotherKindComputesThem) {
  const ServerProcess one(Shared()), other(Shared({"--cache-type", "bf16"}));
  for (const uint16_t port : {one.port(), other.port()}) WaitFor(port, "shared_prefixes_up", 1);
  Ask(one.port(), "/v1/completions", Completion(LongText(20)));
  WaitFor(one.port(), "shared_prefix_stored_total", 1);
  Ask(other.port(), "/v1/completions", Completion(LongText(20)));
  EXPECT_EQ(Metric(other.port(), "shared_prefix_hits_total"), 0);
  EXPECT_EQ(Metric(other.port(), "shared_prefix_misses_total"), 1);
}

TEST_F(SharedPrefixesTest, WithoutRedisPromptsAreComputed) {
  ServerProcess one(Shared());
  WaitFor(one.port(), "shared_prefixes_up", 1);
  const Json before = Ask(one.port(), "/v1/completions", Completion(LongText(20)));
  redis_.Kill();
  EXPECT_EQ(Ask(one.port(), "/v1/completions", Completion(LongText(20)))["choices"],
            before["choices"]);
  Ask(one.port(), "/v1/completions", Completion(LongText(20) + LongText(21)));
  EXPECT_TRUE(one.WaitFor("inlay: prefixes are not shared for now, and prompts are computed: "));
  // It also starts without.
  ServerProcess other(Shared());
  EXPECT_TRUE(other.WaitFor("prefixes are not shared for now"));
  EXPECT_EQ(Ask(other.port(), "/v1/completions", Completion(LongText(20)))["choices"],
            before["choices"]);
  EXPECT_EQ(Metric(other.port(), "shared_prefixes_up"), 0);
  other.Signal(SIGTERM);
  EXPECT_EQ(other.Wait(), 0) << other.err();
}

// On one machine a folder does what Redis does for several.
TEST(PrefixFolderTest, WhatWasComputedLastsOverARestart) {
  const TempFolder folder;
  const std::vector<std::string> flags = {
      "-m",          "models/bard.gguf",      "-t", "1", "--shared-prefixes",
      folder.path(), "--shared-prefixes-min", "64"};
  const auto cached = [](const Json& reply) {
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"].get<int>();
  };
  const std::string text = LongText(40);
  // Too little for a state of its own while the server runs.
  const std::string longer = LongText(48);
  ServerProcess first(flags);
  WaitFor(first.port(), "shared_prefixes_up", 1);
  const Json begun = Ask(first.port(), "/v1/completions", Completion(text));
  WaitFor(first.port(), "shared_prefix_stored_total", 1);
  first.Signal(SIGKILL);
  first.Wait();

  ServerProcess second(flags);
  WaitFor(second.port(), "shared_prefixes_up", 1);
  const Json again = Ask(second.port(), "/v1/completions", Completion(text));
  EXPECT_EQ(again["choices"], begun["choices"]);
  EXPECT_EQ(cached(again), again["usage"]["prompt_tokens"].get<int>() - 1);
  const Json gone_on = Ask(second.port(), "/v1/completions", Completion(longer));
  EXPECT_EQ(Metric(second.port(), "shared_prefix_stored_total"), 0);
  second.Signal(SIGTERM);
  EXPECT_EQ(second.Wait(), 0) << second.err();

  ServerProcess third(flags);
  WaitFor(third.port(), "shared_prefixes_up", 1);
  const Json last = Ask(third.port(), "/v1/completions", Completion(longer));
  EXPECT_EQ(last["choices"], gone_on["choices"]);
  EXPECT_EQ(cached(last), last["usage"]["prompt_tokens"].get<int>() - 1);
}

TEST_F(SharedPrefixesTest, PlacesThatAreNone) {
  const auto refused = [](std::vector<std::string> flags, const std::string& why) {
    flags.insert(flags.begin(), {"serve", "--port", "0"});
    ExpectError(RunProgram(flags), 2, HasSubstr(why));
  };
  refused({"--shared-prefixes", "nowhere"}, "nowhere is no existing folder");
  refused({"--shared-prefixes", "valkey://h"}, "--shared-prefixes redis://");
  refused({"--shared-prefixes", "redis://"}, "the host is missing");
  refused({"--shared-prefixes", "redis://h", "--sandbox"}, "--sandbox lets no connection be made");
  refused({"--shared-prefixes-ttl", "0"}, "--shared-prefixes-ttl");
  refused({"--shared-prefixes-limit", "0"}, "--shared-prefixes-limit");
}

}  // namespace
}  // namespace inlay
