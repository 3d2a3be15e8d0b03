// Where the settings of sampling come from: the flag or request, the server's flags, the model's
// file, its config.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "nlohmann/json.hpp"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/serve/http/raw_client.h"
#include "tests/tools/program.h"
#include "tests/tools/server_process.h"

namespace inlay {
namespace {

using serve::RawClient;
using serve::RawReply;
using ::testing::HasSubstr;
using Json = nlohmann::json;

// The demo model with settings by which an answer is the same whatever the seed.
std::string GreedyModel() {
  const auto file = GgufFile::Open(kDemoModel);
  EXPECT_TRUE(file.ok()) << file.status();
  const std::string path = ScratchPath("greedy.gguf");
  WriteChanged(*file,
               {.add_keys =
                    [](GgufWriter& w) {
                      w.SetFloat32("general.sampling.temp", 0);
                      w.SetInt32("general.sampling.top_k", 3);
                      w.SetInt32("general.sampling.mirostat", 2);
                    }},
               path);
  return path;
}

RawReply Complete(const ServerProcess& server, const Json& body) {
  const std::string text = body.dump();
  RawClient client(server.port());
  EXPECT_TRUE(client.Send(absl::StrCat(
      "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n",
      "Content-Type: application/json\r\nContent-Length: ", text.size(), "\r\n\r\n", text)));
  return client.Read();
}

std::string TextOf(const RawReply& reply) {
  EXPECT_EQ(reply.status, 200) << reply.body;
  const Json json = Json::parse(reply.body, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("choices")) return reply.body;
  return json["choices"][0]["text"].get<std::string>();
}

std::string Generated(std::vector<std::string> more) {
  more.insert(more.begin(), {"generate", "-p", "ROMEO:", "-n", "30", "--no-echo"});
  const ProgramResult result = RunProgram(more);
  EXPECT_EQ(result.status, 0) << absl::StrJoin(more, " ") << ": " << result.err;
  return result.out;
}

TEST(SamplingDefaultsTest, OfTheFileAreUsedUnlessAFlagSaysOtherwise) {
  const std::string model = GreedyModel();
  const std::string greedy = Generated({"--temp", "0"});
  const std::string drawn = Generated({"-s", "5", "--top-k", "3"});
  ASSERT_NE(greedy, drawn);
  EXPECT_EQ(Generated({"-m", model, "-s", "5"}), greedy);
  EXPECT_EQ(Generated({"-m", model, "-s", "5", "--temp", "0.8"}), drawn) << "top-k is the file's";
  EXPECT_THAT(RunProgram({"generate", "-m", model, "-p", "A", "-n", "1"}).err,
              HasSubstr(": ignoring the key general.sampling.mirostat (2)\n"));
  const ProgramResult chat = RunProgram({"chat", model, "-n", "9", "-s", "5"}, {.input = "A\n"});
  EXPECT_EQ(chat.out,
            RunProgram({"chat", "-n", "9", "-s", "6", "--temp", "0"}, {.input = "A\n"}).out);
}

TEST(SamplingDefaultsTest, InspectShowsThem) {
  const std::string model = GreedyModel();
  const Json sampling = RunProgram({"inspect", model, "-o", "json"}).Json()["sampling"];
  EXPECT_EQ(sampling["temperature"], 0);
  EXPECT_EQ(sampling["top_k"], 3);
  EXPECT_EQ(sampling["top_p"], 0.95);
  EXPECT_THAT(RunProgram({"inspect", model}).out, HasSubstr("--temp 0 --top-k 3 --top-p 0.95"));
  EXPECT_THAT(RunProgram({"inspect", model}).out, HasSubstr("general.sampling.mirostat (2)"));
}

TEST(SamplingDefaultsTest, OfTheFileAreThoseOfAServer) {
  const ServerProcess server({"-m", GreedyModel(), "-t", "1"});
  const std::string greedy = Generated({"--temp", "0"});
  const Json body = {{"prompt", "ROMEO:"}, {"max_tokens", 30}, {"seed", 5}};
  EXPECT_EQ(TextOf(Complete(server, body)) + "\n", greedy);
  Json warm = body;
  warm["temperature"] = 0.8;
  EXPECT_NE(TextOf(Complete(server, warm)) + "\n", greedy);
}

TEST(SamplingDefaultsTest, OfAServersFlagsComeBeforeTheFiles) {
  const std::string log = ScratchPath("answers.jsonl");
  ServerProcess server({"-m", GreedyModel(), "-t", "1", "--temp", "0.8", "-s", "5", "-n", "30",
                        "--repeat-last-n", "7", "--answer-log", log});
  const std::string drawn = Generated({"-s", "5", "--top-k", "3"});
  EXPECT_EQ(TextOf(Complete(server, {{"prompt", "ROMEO:"}})) + "\n", drawn);
  EXPECT_EQ(
      TextOf(Complete(server, {{"prompt", "ROMEO:"}, {"temperature", 0}, {"repeat_last_n", 3}})) +
          "\n",
      Generated({"--temp", "0"}));
  server.Signal(SIGTERM);
  EXPECT_EQ(server.Wait(), 0) << server.err();
  // The log has what was used, so that a program without these flags computes the same.
  const std::string lines = ReadFile(log);
  const size_t end = lines.find('\n');
  const Json record = Json::parse(lines.substr(0, end));
  const Json& sampling = record["sampling"];
  EXPECT_EQ(sampling["seed"], 5);
  EXPECT_EQ(sampling["top_k"], 3);
  EXPECT_EQ(sampling["repeat_last_n"], 7);
  EXPECT_EQ(record["max_tokens"], 30);
  EXPECT_EQ(Json::parse(lines.substr(end))["sampling"]["repeat_last_n"], 3);
  const Json replayed = RunProgram({"replay", "-m", kDemoModel, log, "-o", "json"}).Json();
  EXPECT_EQ(replayed["same"], 2);
}

TEST(SamplingDefaultsTest, OnlyParallelIsTheNumberOfAnswersAtATime) {
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "-n", "-2"}), 2, HasSubstr("'-2'"));
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "-np", "513"}), 2, HasSubstr("--parallel"));
  const ServerProcess server({"-m", kDemoModel, "-t", "1", "--n-predict", "4"});
  const RawReply reply =
      Complete(server, {{"prompt", "ROMEO:"}, {"temperature", 0}, {"ignore_eos", true}});
  EXPECT_EQ(Json::parse(reply.body)["usage"]["completion_tokens"], 4);
}

TEST(SamplingDefaultsTest, VariablesOfTheTemplateAreChecked) {
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "--chat-template-kwargs", "[]"}), 2,
              HasSubstr("--chat-template-kwargs: must be an object, not a list"));
  ExpectError(RunProgram({"chat", "-m", kDemoModel, "--chat-template-kwargs", "{}"}), 2,
              HasSubstr("--no-think"));
  ExpectError(RunProgram({"serve", "-m", kDemoModel, "--reasoning-budget", "0"}), 2,
              HasSubstr("--chat-template-kwargs"));
}

// By a template that writes the variable into the prompt.
TEST(SamplingDefaultsTest, VariablesOfTheTemplateAreThoseOfRequestsToo) {
  const std::string chat_template = ScratchPath("template");
  WriteFile(chat_template, "{{ messages[0].content }} {{ mood }} {{ place }}");
  const ServerProcess server({"-m", kDemoModel, "-t", "1", "--chat-template", chat_template,
                              "--chat-template-kwargs", "{\"mood\": \"sad\", \"place\": 1}"});
  const auto rendered = [&](Json body) {
    body["messages"] = {{{"role", "user"}, {"content", "A"}}};
    const std::string text = body.dump();
    RawClient client(server.port());
    EXPECT_TRUE(client.Send(absl::StrCat(
        "POST /apply-template HTTP/1.1\r\nHost: localhost\r\n",
        "Content-Type: application/json\r\nContent-Length: ", text.size(), "\r\n\r\n", text)));
    return client.Read().body;
  };
  EXPECT_THAT(rendered(Json::object()), HasSubstr("A sad 1"));
  EXPECT_THAT(rendered({{"chat_template_kwargs", {{"mood", "glad"}}}}), HasSubstr("A glad 1"));
}

}  // namespace
}  // namespace inlay
