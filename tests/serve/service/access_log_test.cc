#include "serve/service/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gemma_like/chat/chat_renderer.h"
#include "nlohmann/json.hpp"
#include "serve/service/api_keys.h"
#include "serve/service/service.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(AccessLineTest, TellsWhatIsKnown) {
  const AccessRecord record{.arrived = absl::FromUnixMillis(1500),
                            .id = "r1",
                            .client = "ann",
                            .method = "POST",
                            .path = "/v1/\"x\"",
                            .status = 200,
                            .seconds = absl::Milliseconds(1250),
                            .first = absl::Nanoseconds(1234567),
                            .bytes = 10,
                            .client_gone = true,
                            .tokens = {{.prompt = 7, .cached = 4, .completion = 2}}};
  EXPECT_EQ(AccessLine(record),
            R"({"time":"1970-01-01T00:00:01.5+00:00","id":"r1","client":"ann","method":"POST",)"
            R"("path":"/v1/\"x\"","status":200,"seconds":1.25,"first_seconds":0.001235,"bytes":10,)"
            R"("prompt_tokens":7,"cached_tokens":4,"completion_tokens":2,"client_gone":true})"
            "\n");
  EXPECT_EQ(
      AccessLine({.arrived = absl::UnixEpoch(), .path = "/", .status = 401}),
      R"({"time":"1970-01-01T00:00:00+00:00","path":"/","status":401,"seconds":0.0,"bytes":0})"
      "\n");
}

TEST(AccessLogTest, IsAppendedToNothingButALogOfRequests) {
  const TempFolder folder;
  const std::string path = folder.Path("file"), answers = folder.Path("answers");
  std::ofstream(path) << AccessLine({.arrived = absl::UnixEpoch()}).substr(0, 4);
  Must(AccessLog::Open(path));  // a line that a killed server has begun
  std::ofstream(answers) << "{\"id\":\"1\"}\n";
  EXPECT_THAT(AccessLog::Open(answers).status().message(),
              HasSubstr(answers + " is no log of requests, and nothing is appended to it"));
}

// The requests that a service with this log had, in the order in which they ended.
class AccessTest : public ::testing::Test {
 protected:
  AccessTest() {
    ServiceOptions options;
    options.scheduler.context = 200'000;
    options.access_log = Must(AccessLog::Open(path_));
    service_ = Must(Service::Create(
        model_, ChatRenderer::CreateFrom(*model_.tokenizer, "{{ messages[0].content }}"), keys_,
        options));
  }
  // Sends a request and waits for its reply and its line, which is written a little later: else the
  // line of the next one might come before.
  std::shared_ptr<FakeReply> AskAndLog(const std::string& body) {
    const auto reply = Ask(*service_, "POST", "/v1/completions", body);
    reply->Wait();
    WaitForLines(++asked_);
    return reply;
  }
  void WaitForLines(size_t count) const {
    EXPECT_TRUE(WaitUntil([&] { return ReadLines().size() >= count; }));
  }
  // What is logged once it has this many lines and the service has ended.
  std::vector<json> Lines(size_t count) {
    service_ = nullptr;
    WaitForLines(count);
    return ReadLines();
  }
  std::vector<json> ReadLines() const {
    std::vector<json> lines;
    std::ifstream file(path_);
    // Without the last one, if its end is not written yet.
    for (std::string line; std::getline(file, line) && !file.eof();)
      lines.push_back(json::parse(line));
    return lines;
  }

  const TempFolder folder_;
  const std::string path_ = folder_.Path("access.jsonl");
  const LoadedModel model_ = LoadBard();
  const ApiKeys keys_;
  std::unique_ptr<Service> service_;
  size_t asked_ = 0;
};

TEST_F(AccessTest, NotesWhatARequestTookAndNoTexts) {
  json body = {{"prompt", "secret ROMEO:"}, {"max_tokens", 5}, {"n", 2}, {"ignore_eos", true}};
  AskAndLog(body.dump());
  body["stream"] = true;
  const auto stream = AskAndLog(body.dump());
  AskAndLog(R"({"prompt": 3})");
  Ask(*service_, "GET", "/health", "")->Wait();
  const size_t sent = stream->body().size();
  const std::vector<json> lines = Lines(3);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["method"], "POST");
  EXPECT_EQ(lines[0]["path"], "/v1/completions");
  EXPECT_EQ(lines[0]["status"], 200);
  EXPECT_GT(lines[0]["prompt_tokens"], 0);
  EXPECT_EQ(lines[0]["completion_tokens"], 10);
  EXPECT_FALSE(lines[0].contains("first_seconds"));
  EXPECT_EQ(lines[1]["prompt_tokens"], lines[0]["prompt_tokens"]);
  EXPECT_EQ(lines[1]["completion_tokens"], 10);
  EXPECT_EQ(lines[1]["bytes"], sent);
  EXPECT_LE(lines[1]["first_seconds"], lines[1]["seconds"]);
  EXPECT_EQ(lines[2]["status"], 400);
  EXPECT_FALSE(lines[2].contains("prompt_tokens"));
  for (const json& line : lines) EXPECT_THAT(line.dump(), Not(HasSubstr("secret")));
}

TEST_F(AccessTest, NotesAClientThatHasGone) {
  constexpr int kEndless = 100'000;  // tokens, of which few are computed before the client leaves
  const json body = {
      {"prompt", "ROMEO:"}, {"stream", true}, {"ignore_eos", true}, {"max_tokens", kEndless}};
  const auto stream = Ask(*service_, "POST", "/v1/completions", body.dump());
  stream->WaitFor("\"text\":\"");
  stream->Leave();
  stream->Wait();
  const std::vector<json> lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["client_gone"], true);
  EXPECT_GT(lines[0]["completion_tokens"], 0);
  EXPECT_LT(lines[0]["completion_tokens"], kEndless);
}

TEST_F(AccessTest, NotesTurnsOfSessions) {
  Ask(*service_, "POST", "/v1/sessions", R"({"name": "talk"})")->Wait();
  WaitForLines(1);  // else the turn's might come before
  const json turn = {{"parent", 0}, {"content", "ROMEO:"}, {"max_tokens", 4}, {"ignore_eos", true}};
  Ask(*service_, "POST", "/v1/sessions/talk/turns", turn.dump())->Wait();
  const std::vector<json> lines = Lines(2);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[1]["path"], "/v1/sessions/talk/turns");
  EXPECT_EQ(lines[1]["completion_tokens"], 4);
}

TEST_F(AccessTest, NotesWhatTheServerRefuses) {
  service_->OnRefusal("r1", "/v1/messages", 413, "the body is too long");
  service_->OnRefusal("r2", "/health", 403, "no");
  const std::vector<json> lines = Lines(1);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0]["id"], "r1");
  EXPECT_EQ(lines[0]["path"], "/v1/messages");
  EXPECT_EQ(lines[0]["status"], 413);
}

}  // namespace
}  // namespace inlay::serve
