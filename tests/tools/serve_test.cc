// inlay serve and inlay replay as processes: their flags, signals and files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "tests/io/store/loopback.h"
#include "tests/serve/http/raw_client.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using serve::Get;
using serve::RawClient;
using serve::RawReply;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

std::string Post(const std::string& path, const Json& body, const std::string& headers = "") {
  const std::string text = body.dump();
  return absl::StrCat("POST ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                      "Content-Type: application/json\r\nContent-Length: ", text.size(), "\r\n",
                      headers, "\r\n", text);
}

RawReply Complete(uint16_t port, const std::string& path, const Json& body,
                  const std::string& headers = "") {
  RawClient client(port);
  EXPECT_TRUE(client.Send(Post(path, body, headers)));
  return client.Read();
}

Json Completion(const std::string& prompt, int max_tokens) {
  return {{"model", "bard"}, {"prompt", prompt}, {"max_tokens", max_tokens}, {"temperature", 0}};
}

TEST(ServeTest, AnswersAsGenerateDoes) {
  ServerProcess server({"-m", kDemoModel, "-t", "2"});
  const RawReply reply = Complete(server.port(), "/v1/completions", Completion("ROMEO:", 40));
  ASSERT_EQ(reply.status, 200) << reply.body;
  const Json json = Json::parse(reply.body);
  const ProgramResult alone = RunProgram(
      {"generate", "-m", kDemoModel, "-p", "ROMEO:", "-n", "40", "--temp", "0", "-o", "json"});
  EXPECT_EQ(json["choices"][0]["text"], alone.Json()["text"]);
  EXPECT_EQ(json["model"], "bard");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
}

TEST(ServeTest, SaysThatAModelHasNoChatTemplate) {
  const ServerProcess plain({"-m", kDemoModel, "-t", "1"});
  EXPECT_THAT(plain.err(), HasSubstr("inlay: no chat template: the model continues the messages"));
  const std::string path = ScratchPath("chat.jinja");
  WriteFile(path, "{{ messages[-1].content }}");
  const ServerProcess chats({"-m", kDemoModel, "-t", "1", "--chat-template", path});
  EXPECT_THAT(chats.err(), Not(HasSubstr("no chat template")));
}

TEST(ServeTest, ASignalLetsRunningAnswersEnd) {
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--drain", "300"});
  RawClient client(server.port());
  Json body = Completion("To be", 400);
  body["stream"] = true;
  body["ignore_eos"] = true;
  ASSERT_TRUE(client.Send(Post("/v1/completions", body)));
  ASSERT_TRUE(client.ReadUntil("data: "));
  server.Signal(SIGTERM);
  EXPECT_TRUE(client.ReadUntil("data: [DONE]")) << "the answer goes on to its end";
  EXPECT_EQ(server.Wait(), 0) << server.err();
}

// Before it has written that it answers.
TEST(ServeTest, ASignalAfterTheFirstReplyLetsAnswersEnd) {
  const auto [fd, port] = BindLoopback();
  close(fd);
  const auto end = [port = port](pid_t pid) {
    EXPECT_TRUE(WaitUntil([port] {
      RawClient client(port);
      return client.connected() && client.Send("GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") &&
             client.Read().status == 200;
    }));
    kill(pid, SIGTERM);
  };
  const ProgramResult ended = RunProgram(
      {"serve", "-m", kDemoModel, "-t", "1", "--port", absl::StrCat(port)}, {.while_running = end});
  EXPECT_EQ(ended.status, 0) << ended.err;
}

// Whoever reads keys again at that moment, or closes a terminal, ends no answer by that.
TEST(ServeTest, SighupEndsNoServerThatDrains) {
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--drain", "300"});
  RawClient client(server.port());
  Json body = Completion("To be", 400);
  body["stream"] = true;
  body["ignore_eos"] = true;
  ASSERT_TRUE(client.Send(Post("/v1/completions", body)));
  ASSERT_TRUE(client.ReadUntil("data: "));
  server.Signal(SIGTERM);
  ASSERT_TRUE(server.WaitFor("ending;"));
  server.Signal(SIGHUP);
  EXPECT_TRUE(client.ReadUntil("data: [DONE]")) << "the answer goes on to its end";
  EXPECT_EQ(server.Wait(), 0) << server.err();
}

// As sd_notify() does, for a service that others wait for; a sandbox would let no socket be made.
TEST(ServeTest, TellsTheServiceManagerWhenItAnswersAndWhenItEnds) {
  const std::string path = ScratchPath("notify");
  const int manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  path.copy(address.sun_path, path.size());
  ASSERT_EQ(bind(manager, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  const auto [fd, free_port] = BindLoopback();
  close(fd);
  std::string told;
  const auto hear = [&] {
    pollfd heard = {.fd = manager, .events = POLLIN, .revents = 0};
    char text[100];
    const ssize_t size = poll(&heard, 1, kLongWaitMs) == 1 ? read(manager, text, sizeof(text)) : 0;
    return std::string(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
  };
  bool answered = false;
  const auto use = [&, port = free_port](pid_t pid) {
    told = hear();
    answered = CanConnect(port);
    kill(pid, SIGTERM);
  };
  const ProgramResult ended = RunProgram(
      {"serve", "-m", kDemoModel, "-t", "1", "--sandbox", "--port", absl::StrCat(free_port)},
      {.env = {{"NOTIFY_SOCKET", path}}, .while_running = use});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_EQ(told, "READY=1");
  EXPECT_TRUE(answered);
  EXPECT_EQ(hear(), "STOPPING=1");
  close(manager);
}

// Who closes the terminal ends what runs there, unless there are keys that the signal reads again.
TEST(ServeTest, SighupEndsAServerWithoutAFileOfKeys) {
  const auto before = signal(SIGHUP, SIG_DFL);  // which the server inherits
  {
    ServerProcess server({"-m", kDemoModel, "-t", "1"});
    server.Signal(SIGHUP);
    EXPECT_EQ(server.Wait(), 0) << server.err();
    EXPECT_THAT(server.err(), HasSubstr("ending;"));
  }
  signal(SIGHUP, SIG_IGN);  // as by nohup
  ServerProcess server({"-m", kDemoModel, "-t", "1"});
  server.Signal(SIGHUP);
  EXPECT_EQ(Get(server.port(), "/health").status, 200);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
  signal(SIGHUP, before);
}

// What could never match is a mistake, not a server that refuses everybody.
TEST(ServeTest, RefusesHostsAndOriginsThatNoRequestHas) {
  const auto refuse = [](const char* flag, const char* value, const char* why) {
    ExpectError(RunProgram({"serve", "-m", kDemoModel, "--port", "0", "--host", "192.0.2.1",
                            "--no-api-key", flag, value}),
                2, testing::AllOf(HasSubstr(value), HasSubstr(why)));
  };
  for (const char* host :
       {"example.org:8080", "http://example.org", "example.org/", "[::1]", "example.org."})
    refuse("--allow-host", host, "is not a name alone");
  for (const char* origin : {"example.org", "https://example.org/", "https://", "://example.org",
                             "https://example.org:443", "http://example.org:80"})
    refuse("--allow-origin", origin, "is not an origin");
  // With these it goes on, to an address that this machine does not have.
  ExpectError(RunProgram({"serve",
                          "-m",
                          kDemoModel,
                          "--port",
                          "0",
                          "--host",
                          "192.0.2.1",
                          "--no-api-key",
                          "--allow-host",
                          "example.org",
                          "--allow-host",
                          "fe80::1",
                          "--allow-host",
                          "*",
                          "--allow-origin",
                          "*",
                          "--allow-origin",
                          "null",
                          "--allow-origin",
                          "https://example.org:8443"}),
              1, HasSubstr("192.0.2.1"));
}

TEST(ServeTest, WithoutTimeToDrainAnswersAreEnded) {
  ServerProcess server({"-m", kDemoModel, "-t", "1", "-c", "200000", "--drain", "0"});
  RawClient client(server.port());
  constexpr int kTokens = 100'000;  // of which the machine computes few before the signal arrives
  Json body = Completion("To be", kTokens);
  body["stream"] = true;
  body["ignore_eos"] = true;
  ASSERT_TRUE(client.Send(Post("/v1/completions", body)));
  ASSERT_TRUE(client.ReadUntil("data: "));
  server.Signal(SIGINT);
  const std::string rest = client.ReadToEnd();
  EXPECT_EQ(server.Wait(), 0) << server.err();
  const std::string end = rest.substr(rest.size() - std::min<size_t>(rest.size(), 400));
  EXPECT_THAT(rest, Not(HasSubstr("[DONE]"))) << end;
  EXPECT_THAT(rest, Not(HasSubstr("\"finish_reason\":\"length\""))) << end;
  EXPECT_LT(absl::c_count(rest, '\n') / 2, kTokens / 2) << end;
}

TEST(ServeTest, KeysAreNeededAndReadAgain) {
  const std::string file = ScratchPath("keys");
  WriteFile(file, "secret-one alice\n");
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--api-key-file", file});
  EXPECT_EQ(Get(server.port(), "/health").status, 200) << "needs no key";
  EXPECT_EQ(Get(server.port(), "/v1/models").status, 401);
  EXPECT_EQ(Get(server.port(), "/v1/models", "Authorization: Bearer wrong-key\r\n").status, 401);
  EXPECT_EQ(Get(server.port(), "/v1/models", "Authorization: Bearer secret-one\r\n").status, 200);
  EXPECT_EQ(Get(server.port(), "/v1/models", "authorization: bearer secret-one\r\n").status, 200);
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-one\r\n").status, 200);
  EXPECT_EQ(Get(server.port(), "/nowhere").status, 401) << "no path is told without a key";
  WriteFile(file, "secret-two alice\n");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitFor("read the API keys again"));
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-one\r\n").status, 401);
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-two\r\n").status, 200);
  WriteFile(file, "bad\n");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitFor("stay as they were"));
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-two\r\n").status, 200);
  const RawReply metrics = Get(server.port(), "/metrics", "x-api-key: secret-two\r\n");
  EXPECT_THAT(metrics.body, HasSubstr("\ninlay_key_reloads_failed_total 1\n"));
  EXPECT_THAT(metrics.body, HasSubstr("\ninlay_replies_total{status=\"4xx\"} 4\n"))
      << "those without a valid key";
}

// As `cp` over the file does, even of the same bytes: what was read until then may be of both.
TEST(ServeTest, AModelThatIsOverwrittenMakesTheServerUnhealthy) {
  const std::string model = ScratchPath("model.gguf");
  WriteFile(model, ReadFile(kDemoModel));
  ServerProcess server({"-m", model, "-t", "1"});
  EXPECT_EQ(Get(server.port(), "/health").status, 200);
  WriteFile(model, ReadFile(kDemoModel));
  const RawReply reply = Complete(server.port(), "/v1/completions", Completion("ROMEO:", 3));
  EXPECT_EQ(reply.status, 503);
  EXPECT_THAT(reply.body, Not(HasSubstr("gguf")));
  EXPECT_EQ(Get(server.port(), "/health").status, 503);
  EXPECT_TRUE(server.WaitFor("every answer fails until the program is started again: "));
}

TEST(ServeTest, RefusesToListenForOthersWithoutAKey) {
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "--host", "0.0.0.0", "--port", "0"}), 2,
              HasSubstr("--host 0.0.0.0 lets other machines in"));
  // A name that begins as addresses of this machine do, and what is written as one of those.
  for (const char* host : {"127.anything.example", "127.0.0.1.example", "127.1", "::", "::2"}) {
    ExpectError(RunProgram({"serve", "-m", kDemoModel, "--host", host, "--port", "0"}), 2,
                HasSubstr(absl::StrCat("--host ", host, " lets other machines in")));
  }
  for (const char* host : {"127.0.0.2", "localhost"})
    EXPECT_NE(ServerProcess({"-m", kDemoModel, "-t", "1", "--host", host}).port(), 0) << host;
  ExpectError(RunProgram({"serve", "-m", kDemoModel}, {.env = {{"INLAY_API_KEY", "short"}}}), 1,
              HasSubstr("INLAY_API_KEY: line 1 has a key of 5 characters"));
}

// An answer without a limit ends where its context does.
TEST(ServeTest, AContextThatMemoryDoesNotSufficeForIsTold) {
  ExpectError(
      RunProgram({"serve", "-m", kDemoModel, "-c", "100000", "--cache-limit", "16", "--port", "0"}),
      1, HasSubstr("memory suffices for conversations of"));
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--cache-limit", "5"});
  EXPECT_THAT(server.err(), HasSubstr("inlay: the context is reduced to "));
  EXPECT_THAT(server.err(), Not(HasSubstr("give -c")));
}

// Connections that do nothing must not keep descriptors from sessions, nor new clients waiting.
TEST(ServeTest, ConnectionsLeaveDescriptorsForOthers) {
  const std::string folder = ScratchPath("sessions");
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const auto [fd, free_port] = BindLoopback();
  close(fd);
  std::string session, refused;
  const auto use = [&, port = free_port](pid_t pid) {
    EXPECT_TRUE(WaitUntil([port] { return CanConnect(port); }));
    std::vector<std::unique_ptr<RawClient>> idle;
    for (int i = 0; i < 80; ++i) idle.push_back(std::make_unique<RawClient>(port));
    RawClient& used = *idle.front();
    used.Send(Post("/v1/sessions", {{"name", "talk"}}));
    session = absl::StrCat(used.Read().status);
    refused = absl::StrCat(idle.back()->Read().status);
    kill(pid, SIGTERM);
  };
  const ProgramResult ended = RunProgram(
      {"-c", "ulimit -n 128; exec \"$0\" \"$@\"", InlayProgram(), "serve", "-m", kDemoModel, "-t",
       "1", "--chat-template", "chatml", "--sessions", folder, "--port", absl::StrCat(free_port)},
      {.program = "/bin/sh", .while_running = use});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("inlay: at most 64 connections at a time, not 2048"));
  EXPECT_EQ(session, "200");
  EXPECT_EQ(refused, "503");
}

TEST(ServeTest, APortInUseIsNamed) {
  const ServerProcess server({"-m", kDemoModel, "-t", "1"});
  const std::string port = absl::StrCat(server.port());
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "--port", port}), 1, HasSubstr(port));
}

TEST(ServeTest, LoggedAnswersAreTheSameWhenComputedAgain) {
  const std::string log = ScratchPath("answers.jsonl");
  ServerProcess server(
      {"-m", kDemoModel, "-t", "2", "-c", "300", "--chat-template", "chatml", "--answer-log", log});
  for (int i = 0; i < 3; ++i) {
    const Json body = {{"model", "bard"},
                       {"messages", {{{"role", "user"}, {"content", absl::StrCat("Speak ", i)}}}},
                       {"max_tokens", 20},
                       {"n", 2}};
    ASSERT_EQ(Complete(server.port(), "/v1/chat/completions", body).status, 200);
  }
  const std::string text = ReadFile(log);
  const std::string first = text.substr(0, text.find('\n'));
  const RawReply replay = Complete(server.port(), "/v1/replay", Json::parse(first));
  EXPECT_EQ(replay.body, "{\"same\":true,\"same_fingerprint\":true}");
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);

  const ProgramResult same = RunProgram({"replay", "-m", kDemoModel, log, "-o", "json"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.Json()["answers"], 6);
  EXPECT_EQ(same.Json()["same"], 6);
  Json changed = Json::parse(first);
  changed["tokens"][4] = changed["tokens"][4].get<int>() ^ 1;
  WriteFile(log, changed.dump() + "\n");
  const ProgramResult differs = RunProgram({"replay", "-m", kDemoModel, log});
  EXPECT_EQ(differs.status, 1);
  EXPECT_THAT(differs.out, HasSubstr("differs at token 4"));
  // What was found before an error is told all the same.
  Json endless = changed;
  endless["prompt"] = std::vector<int>(3000, 5);
  WriteFile(log, changed.dump() + "\n" + endless.dump() + "\n");
  const ProgramResult fails = RunProgram({"replay", "-m", kDemoModel, log});
  ExpectError(fails, 1, testing::AllOf(HasSubstr(":2: "), HasSubstr("context")));
  EXPECT_THAT(fails.out, testing::AllOf(HasSubstr("differs at token 4"),
                                        HasSubstr("0 of 1 answer is the same")));
}

TEST(ServeTest, LinesThatAreNoRecordAreNamedAndTheOthersComputed) {
  const std::string log = ScratchPath("answers.jsonl");
  {
    ServerProcess server({"-m", kDemoModel, "-t", "1", "--answer-log", log});
    ASSERT_EQ(Complete(server.port(), "/v1/completions", Completion("ROMEO:", 3)).status, 200);
    server.Signal(SIGTERM);
    EXPECT_EQ(server.Wait(), 0);
  }
  const std::string record = ReadFile(log);
  WriteFile(log, absl::StrCat("{}\n", record, "\n{\"id\": \"r", "\n", record));
  const ProgramResult text = RunProgram({"replay", "-m", kDemoModel, log});
  EXPECT_THAT(text.out, HasSubstr(":1: the record is none"));
  EXPECT_THAT(text.out, HasSubstr(":4: "));
  EXPECT_THAT(text.out, HasSubstr("2 of 2 answers are the same; 2 lines are no record"));
  ExpectError(text, 1, HasSubstr("2 lines are no record"));
  const ProgramResult json = RunProgram({"replay", "-m", kDemoModel, log, "-o", "json"});
  EXPECT_EQ(json.status, 1);
  EXPECT_EQ(json.Json()["same"], 2);
  EXPECT_EQ(json.Json()["bad_lines"], Json({1, 4}));
}

TEST(ServeTest, LoggedAnswersOfAShapeAreTheSameWhenComputedAgain) {
  const std::string log = ScratchPath("answers.jsonl");
  ServerProcess server(
      {"-m", kDemoModel, "-t", "2", "-c", "300", "--chat-template", "chatml", "--answer-log", log});
  const Json schema = {{"type", "array"}, {"items", {{"enum", {"a", "b"}}}}, {"maxItems", 3}};
  const Json shapes[] = {
      {{"response_format",
        {{"type", "json_schema"}, {"json_schema", {{"name", "list"}, {"schema", schema}}}}}},
      {{"grammar", "root ::= \"no, \" [a-z]{5}"}}};
  for (const Json& shape : shapes) {
    Json body = {{"model", "bard"},
                 {"messages", {{{"role", "user"}, {"content", "Speak"}}}},
                 {"max_tokens", 40},
                 {"seed", 3}};
    body.update(shape);
    const RawReply reply = Complete(server.port(), "/v1/chat/completions", body);
    ASSERT_EQ(reply.status, 200) << reply.body;
  }
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  const ProgramResult same = RunProgram({"replay", "-m", kDemoModel, log, "-o", "json"});
  EXPECT_EQ(same.status, 0) << same.err;
  EXPECT_EQ(same.Json()["same"], 2);

  // The record has the shape: by another one the answer is another.
  const std::string text = ReadFile(log);
  std::string last = text.substr(text.find('\n') + 1);
  const size_t at = last.find("[a-z]");
  ASSERT_NE(at, std::string::npos) << last;
  WriteFile(log, last.replace(at, 5, "[0-9]"));
  const ProgramResult differs = RunProgram({"replay", "-m", kDemoModel, log});
  EXPECT_EQ(differs.status, 1);
  EXPECT_THAT(differs.out, HasSubstr("differs at token"));
  WriteFile(log, last.replace(at, 5, "[0-9)"));
  ExpectError(RunProgram({"replay", "-m", kDemoModel, log}), 1, HasSubstr(":1: "));
}

TEST(ServeTest, TokensAndTexts) {
  const ServerProcess server({"-m", kDemoModel, "-t", "1"});
  const RawReply tokens = Complete(server.port(), "/tokenize", {{"content", "To be"}});
  ASSERT_EQ(tokens.status, 200) << tokens.body;
  const RawReply text =
      Complete(server.port(), "/detokenize", {{"tokens", Json::parse(tokens.body)["tokens"]}});
  EXPECT_EQ(Json::parse(text.body)["content"], "To be");
  EXPECT_EQ(Complete(server.port(), "/v1/embeddings", {{"model", "m"}, {"input", "a"}}).status,
            501);
  EXPECT_EQ(Complete(server.port(), "/v1/nothing", Json::object()).status, 404);
  const RawReply metrics = Get(server.port(), "/metrics");
  EXPECT_THAT(metrics.body, HasSubstr("\ninlay_connections "));
}

TEST(ServeTest, ServesInTheSandbox) {
  ServerProcess server({"-m", kDemoModel, "-t", "2", "--sandbox", "--host", "localhost"});
  const RawReply reply = Complete(server.port(), "/v1/completions", Completion("ROMEO:", 5));
  EXPECT_EQ(reply.status, 200) << reply.body;
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
}

TEST(ServeTest, TheSandboxRefusesWhatWouldFailWithTheFirstRequest) {
  // There is none: it is refused before the model is opened.
  const std::string model = ScratchPath("model.gguf"), folder = ::testing::TempDir();
  for (const std::string& place : {folder, std::string("redis://127.0.0.1:1")}) {
    ExpectError(RunProgram({"serve", "-m", model, "--sandbox", "--sessions", place}), 2,
                HasSubstr("as --sessions"));
    ExpectError(
        RunProgram({"serve", "-m", model, "--sandbox"}, {.env = {{"INLAY_SESSIONS", place}}}), 2,
        HasSubstr("INLAY_SESSIONS"));
  }
  ExpectError(RunProgram({"serve", "-m", model, "--sandbox", "--shared-prefixes", folder}), 2,
              HasSubstr("as --shared-prefixes"));
}

// A hangup asks to open it anew, which the sandbox refuses.
TEST(ServeTest, TheSandboxKeepsTheAnswerLogOpen) {
  const std::string log = ScratchPath("answers.jsonl"), old = absl::StrCat(log, ".1");
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--sandbox", "--answer-log", log});
  ASSERT_EQ(rename(log.c_str(), old.c_str()), 0);
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitFor("the answer log stays the file that it was: --sandbox"));
  EXPECT_EQ(Complete(server.port(), "/v1/completions", Completion("ROMEO:", 2)).status, 200);
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0);
  EXPECT_THAT(ReadFile(old), HasSubstr("\"prompt\""));
  EXPECT_NE(access(log.c_str(), F_OK), 0);
}

// What is written into the file is read; one that takes its place cannot be, and that is said.
TEST(ServeTest, TheSandboxReadsTheKeysOfTheFileThatWasThere) {
  const std::string file = ScratchPath("keys"), other = ScratchPath("other");
  WriteFile(file, "secret-one alice\n");
  ServerProcess server({"-m", kDemoModel, "-t", "1", "--sandbox", "--api-key-file", file});
  WriteFile(file, "secret-two alice\n");
  server.Signal(SIGHUP);
  ASSERT_TRUE(server.WaitFor("read the API keys again"));
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-two\r\n").status, 200);
  if (syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1) < 0) {
    GTEST_SKIP() << "no Landlock here";
  }
  WriteFile(other, "secret-three alice\n");
  ASSERT_EQ(rename(other.c_str(), file.c_str()), 0);
  server.Signal(SIGHUP);
  EXPECT_TRUE(server.WaitFor("start the server again")) << server.err();
  EXPECT_EQ(Get(server.port(), "/v1/models", "x-api-key: secret-two\r\n").status, 200);
}

}  // namespace
}  // namespace inlay
