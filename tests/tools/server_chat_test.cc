// inlay chat --server: a chat with a running server, ours and ones that misbehave.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "serve/http/http_server.h"
#include "tests/gemma_like/scripted_model.h"
#include "tests/must.h"
#include "tests/serve/http/raw_client.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"

namespace inlay {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

std::string Url(uint16_t port) { return absl::StrCat("http://127.0.0.1:", port); }

ProgramResult Chat(uint16_t port, const std::string& input, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"chat", "--server", Url(port), "--temp", "0", "-n", "20"});
  return RunProgram(more, {.input = input});
}

TEST(ServerChat, AnswersAsTheModelDoesHere) {
  ServerProcess server({"-m", "models/bard.gguf"});
  const ProgramResult here = RunProgram({"chat", "--temp", "0", "-n", "20"}, {.input = "ROMEO:\n"});
  const ProgramResult there = Chat(server.port(), "ROMEO:\n");
  EXPECT_EQ(there.status, 0);
  EXPECT_THAT(there.err, IsEmpty());
  EXPECT_EQ(there.out, here.out);
  EXPECT_EQ(Chat(server.port(), "ROMEO:\n", {"-m", "bard"}).out, here.out);
  // The second answer depends on the first turn.
  const ProgramResult two = Chat(server.port(), "ROMEO:\nJULIET:\n");
  EXPECT_EQ(two.out.substr(0, here.out.size()), here.out);
  EXPECT_NE(two.out.substr(here.out.size()), Chat(server.port(), "JULIET:\n").out);
  const ProgramResult base =
      RunProgram({"chat", "--server", Url(server.port()) + "/v1/", "--temp", "0", "-n", "20"},
                 {.input = "ROMEO:\n"});
  EXPECT_EQ(base.out, here.out);
}

TEST(ServerChat, ObeysCommandsAndRefusesThoseOfAModelHere) {
  ServerProcess server({"-m", "models/bard.gguf"});
  const ProgramResult result = Chat(server.port(),
                                    "ROMEO:\n/stats\nJULIET:\n/stats\n/rewind\n/stats\n/regen\n"
                                    "/clear\n/stats\n//slash\n/help\n/quit\n");
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_THAT(result.err,
              AllOf(HasSubstr("turns: 1; model: bard at 127.0.0.1:"), HasSubstr("turns: 2;"),
                    HasSubstr("generated: 20 tokens in"), HasSubstr("back after turn 1"),
                    HasSubstr("removed all turns\nturns: 0;"), HasSubstr("/regen")));
  EXPECT_THAT(result.err, Not(HasSubstr("/save")));  // what is refused is not in the help
  for (const char* command : {"/fork", "/fork 1", "/forks", "/drop 1", "/tokens", "/save x",
                              "/save! x", "/load x", "/chats"}) {
    const std::string name = std::string(command).substr(0, std::string(command).find(' '));
    ExpectError(Chat(server.port(), std::string(command) + "\n"), 1,
                HasSubstr(name + " needs a model that runs here"));
  }
  const auto ask = [&](const std::string& input, std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"chat", "--server", Url(server.port()), "-n", "8"});
    return RunProgram(flags, {.input = input}).out;
  };
  EXPECT_EQ(ask("/system A tragedy.\nROMEO:\n", {"-s", "3"}),
            ask("ROMEO:\n", {"-s", "3", "--system", "A tragedy."}));
  EXPECT_EQ(ask("/temp 0\nROMEO:\n", {"-s", "3"}), ask("ROMEO:\n", {"--temp", "0"}));
  EXPECT_EQ(ask("/seed 5\nROMEO:\n", {"-s", "3"}), ask("ROMEO:\n", {"-s", "5"}));
  const std::string greedy = ask("ROMEO:\n", {"--temp", "0"});
  EXPECT_NE(ask("ROMEO:\n", {"--temp", "0", "--repeat-penalty", "9"}), greedy);
  EXPECT_EQ(ask("ROMEO:\n", {"--temp", "0", "--repeat-penalty", "9", "--repeat-last-n", "0"}),
            greedy);
  EXPECT_THAT(Chat(server.port(), "ROMEO:\n/show\n/seed\n/seed 7\nJULIET:\n/seed\n").err,
              AllOf(HasSubstr("> ROMEO:\n"), HasSubstr("the server draws the seeds\n"),
                    HasSubstr("the next answer has seed 8\n")));
  ExpectError(Chat(server.port(), "/sing\n"), 1, HasSubstr("'/sing' is not a command"));
  ExpectError(Chat(server.port(), "/regen\n"), 1, HasSubstr("no answer"));
  ExpectError(Chat(server.port(), "/rewind 2\n"), 1, HasSubstr("cannot rewind 2 turns"));
}

TEST(ServerChat, ShowsTheServersOwnWords) {
  const std::string keys = ScratchPath("keys"), mine = ScratchPath("mine");
  WriteFile(keys, "# of us\nright-key me\n");
  WriteFile(mine, "wrong-key\n");
  ServerProcess server({"-m", "models/bard.gguf", "-c", "128", "--api-key-file", keys});
  ExpectError(Chat(server.port(), "A\n", {"--api-key-file", mine}), 1,
              HasSubstr("the server says: this API key is not known"));
  ExpectError(Chat(server.port(), "A\n"), 1, HasSubstr("the server says: this server needs"));
  EXPECT_EQ(Chat(server.port(), "A\n", {"--api-key-file", keys}).status, 0);
  // An answer is refused in them too.
  ExpectError(Chat(server.port(), std::string(2000, 'x') + "\n", {"--api-key-file", keys}), 1,
              AllOf(HasSubstr("the server says: "), HasSubstr("128")));
  unlink(keys.c_str());
  unlink(mine.c_str());
}

TEST(ServerChat, RefusesFlagsAndAddresses) {
  const auto chat = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), "chat");
    return RunProgram(flags, {.input = "A\n"});
  };
  ExpectError(chat({"--server", "http://127.0.0.1:1"}), 1,
              HasSubstr("cannot connect to the server at 127.0.0.1:1"));
  ExpectError(chat({"--server", "https://127.0.0.1"}), 2, HasSubstr("a proxy's business"));
  ExpectError(chat({"--server", "127.0.0.1:8080"}), 2, HasSubstr("http://HOST[:PORT]"));
  ExpectError(chat({"--server", "http://127.0.0.1:1", "--sandbox"}), 2,
              HasSubstr("--sandbox is for a model that runs here"));
  for (const char* flag : {"-t", "-c", "--cache-limit"}) {
    ExpectError(chat({"--server", "http://127.0.0.1:1", flag, "1"}), 2,
                HasSubstr("is for a model that runs here, not for that of --server"));
  }
  ExpectError(chat({"--api-key-file", "x"}), 2, HasSubstr("--server"));
}

TEST(ServerChat, ThoughtsAreDimmed) {
  const std::string path = ScratchPath("thinks.jinja");
  WriteFile(path,
            "{{ messages[-1].content }}\nROMEO:\n"
            "{{ '<think>' if add_generation_prompt }}{# </think> #}");
  ServerProcess server({"-m", "models/bard.gguf", "--chat-template", path});
  const std::vector<std::string> chat = {"chat", "--server", Url(server.port()), "-n", "5"};
  EXPECT_THAT(RunOnTerminal(chat, "x\n/exit\n", {{"TERM", "xterm"}}).out,
              AllOf(HasSubstr("\033[2m"), HasSubstr("; this chat is not kept")));
  unlink(path.c_str());
}

// A model that thinks answers in a shape after its thoughts, here as there.
TEST(ServerChat, ShapesFollowThoughts) {
  const std::string path = ScratchPath("thinks.gguf");
  const ModelScript script = {
      .chat_template =
          "{% for m in messages %}{{ m.content }}{% endfor %}"
          "{% if add_generation_prompt %}<think><|go|>{% endif %}{# </think> #}",
      .control_tokens = {"<think>", "</think>", "<|go|>"},
      .answers = {{.start = "<|go|>", .pieces = {"Hm", ".", "</think>", "\"", "b", "\""}}}};
  ASSERT_TRUE(WriteScriptedModel(script, path).ok());
  const ServerProcess server({"-m", path, "-c", "200"});
  const auto both = [&](std::vector<std::string> flags, const std::string& answer) {
    const ProgramResult there = Chat(server.port(), "A\n", flags);
    flags.insert(flags.begin(), {"chat", "-m", path, "--temp", "0", "-n", "20"});
    for (const ProgramResult& result : {there, RunProgram(flags, {.input = "A\n"})}) {
      EXPECT_EQ(result.out, answer + "\n");
      EXPECT_EQ(result.err, "Hm.\n");
    }
  };
  both({}, "\"b\"");
  both({"--schema", "{\"enum\": [\"a\", \"b\"]}"}, "\"b\"");
  both({"--grammar", "root ::= \"yes\""}, "yes");
  ExpectError(Chat(server.port(), "A\n", {"--schema", "{\"not\": {}}"}), 1,
              AllOf(HasSubstr("the server says: "), HasSubstr("keyword 'not'")));
  ExpectError(Chat(server.port(), "A\n", {"--schema", "{"}), 1, HasSubstr("the JSON schema"));
  ExpectError(Chat(server.port(), "A\n", {"--regex", "a"}), 2,
              HasSubstr("--regex is for a model that runs here"));
  unlink(path.c_str());
}

TEST(ServerChat, CtrlCEndsTheAnswerHereAndThere) {
  ServerProcess server({"-m", "models/bard.gguf", "-c", "1000000"});
  Terminal terminal({"chat", "--server", Url(server.port())}, {{"TERM", "xterm"}});
  terminal.WaitFor("> ");
  for (int turn = 1; turn <= 2; ++turn) {
    terminal.Type("ROMEO:\n");
    terminal.WaitFor("ROMEO:");
    terminal.WaitFor("\n");
    terminal.WaitFor("e");
    terminal.Type("\x03");
    terminal.WaitFor("> ");
    terminal.Type("/stats\n");
    terminal.WaitFor(absl::StrCat("turns: ", turn, ";"));
    terminal.WaitFor("> ");
  }
  terminal.Type("/exit\n");
  EXPECT_EQ(terminal.Finish().status, 0);
  serve::RawClient client(server.port());
  while (true) {
    client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    const serve::RawReply reply = client.Read();
    ASSERT_EQ(reply.status, 200);
    if (reply.body.find("inlay_answers_cancelled_total 2\n") != std::string::npos) break;
  }
}

// A server that replies to chats with what the test says, and keeps what it was asked.
class FakeServer {
 public:
  explicit FakeServer(std::string events) : events_(std::move(events)) {
    server_ = Must(serve::HttpServer::Start(
        {}, [this](serve::HttpRequest request, std::shared_ptr<serve::HttpReply> reply) {
          if (request.method == "GET")
            return reply->Send(200, "application/json", R"({"data": [{"id": "first"}]})");
          {
            const std::lock_guard lock(mutex_);
            bodies_.push_back(json::parse(request.body));
          }
          reply->StartStream(200, "text/event-stream");
          reply->Write(events_);
          reply->Finish();
        }));
  }
  uint16_t port() const { return server_->port(); }
  json body(size_t i) {
    const std::lock_guard lock(mutex_);
    return bodies_.at(i);
  }

 private:
  const std::string events_;
  std::mutex mutex_;
  std::vector<json> bodies_;
  std::unique_ptr<serve::HttpServer> server_;
};

std::string Delta(const std::string& delta, const std::string& reason = "null") {
  return absl::StrCat(R"(data: {"choices": [{"delta": )", delta, R"(, "finish_reason": )", reason,
                      "}]}\r\n\r\n");
}

TEST(ServerChat, RequestsHoldFlagsAndHistory) {
  FakeServer server(
      ": ping\n\n" + Delta(R"({"role": "assistant", "content": ""})") +
      Delta(R"({"reasoning_content": "Hm"})") + Delta(R"({"content": "Ye"})") +
      Delta(R"({"content": "s"})") +
      Delta(
          R"({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]})") +
      Delta(R"({"tool_calls": [{"index": 0, "function": {"arguments": "}"}}]})") +
      Delta(
          R"({"tool_calls": [{"index": 1, "id": "d", "function": {"name": "g", "arguments": "[]"}}]})") +
      Delta("{}", R"("tool_calls")") +
      "data: {\"choices\": [], \"usage\": {}}\n\ndata: [DONE]\n\n");
  const std::string tools = ScratchPath("tools.json");
  WriteFile(tools, R"([{"type": "function", "function": {"name": "f"}}])");
  const ProgramResult result =
      RunProgram({"chat", "--server", Url(server.port()), "--system", "Be brief.", "-s", "5",
                  "--top-k", "3", "-n", "9", "--stop", "x", "--no-think", "--tools", tools},
                 {.input = "A\nB\xff\n"});
  unlink(tools.c_str());
  EXPECT_EQ(result.status, 0) << result.err;
  const std::string answer = "Yes\n[calls f {}]\n[calls g []]\n";
  EXPECT_EQ(result.out, answer + answer);
  EXPECT_EQ(result.err, "Hm\nHm\n") << "thoughts are no part of what a pipe gets";
  json expected = json::parse(R"({"model": "first", "stream": true,
      "stream_options": {"include_usage": true}, "seed": 5, "top_k": 3, "max_tokens": 9,
      "stop": ["x"], "chat_template_kwargs": {"enable_thinking": false},
      "tools": [{"type": "function", "function": {"name": "f"}}],
      "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "A"}]})");
  EXPECT_EQ(server.body(0), expected);
  expected["seed"] = 6;
  expected["messages"].push_back(json::parse(
      R"({"role": "assistant", "content": "Yes", "reasoning_content": "Hm", "tool_calls": [
          {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
          {"id": "d", "type": "function", "function": {"name": "g", "arguments": "[]"}}]})"));
  expected["messages"].push_back({{"role", "user"}, {"content", "B\ufffd"}});
  EXPECT_EQ(server.body(1), expected);
}

// As vLLM and OpenRouter call thoughts.
TEST(ServerChat, ReadsThoughtsByTheirOtherName) {
  FakeServer server(Delta(R"({"reasoning": "Hm", "reasoning_content": "Hm"})") +
                    Delta(R"({"reasoning": "."})") + Delta(R"({"content": "Yes"})") +
                    Delta("{}", R"("stop")") + "data: [DONE]\n\n");
  const ProgramResult result = Chat(server.port(), "A\n");
  EXPECT_EQ(result.out, "Yes\n");
  EXPECT_EQ(result.err, "Hm.\n");
}

TEST(ServerChat, RefusesSeedsBelowZero) {
  ExpectError(RunProgram({"chat", "--server", "http://127.0.0.1:1", "-s", "-7"}), 2,
              HasSubstr("'-7' is not a whole number from 0"));
}

// An answer that fails is no turn.
TEST(ServerChat, AnswersThatFail) {
  const struct {
    std::string events, message;
  } kCases[] = {
      {Delta(R"({"content": "Ye"})") + R"(data: {"error": {"message": "no memory"}})" + "\n\n",
       "the server says: no memory"},
      {Delta(R"({"content": "Ye"})"), "ends its reply before the answer has ended"},
      {"data: {\n\n", "an event of the server is not JSON"},
      {absl::StrCat("data: ", std::string(200, '['), std::string(200, ']'), "\n\n"),
       "an event of the server nests deeper than 128 levels"},
      {"", "ends its reply before"},
  };
  for (const auto& c : kCases) {
    FakeServer server(c.events);
    const ProgramResult result = Chat(server.port(), "A\nB\n");
    EXPECT_EQ(result.status, 1);
    EXPECT_THAT(result.err, HasSubstr(c.message));
    EXPECT_THAT(RunOnTerminal({"chat", "--server", Url(server.port())}, "A\n/stats\n/exit\n",
                              {{"TERM", "dumb"}})
                    .out,
                HasSubstr("turns: 0;"));
  }
}

// What a server writes cannot steer the terminal.
TEST(ServerChat, TextsAreEscaped) {
  FakeServer server(Delta(R"({"content": "\u001b[31mred"})", R"("stop")"));
  EXPECT_THAT(Chat(server.port(), "A\n").out, AllOf(HasSubstr("red"), Not(HasSubstr("\033"))));
}

}  // namespace
}  // namespace inlay
