// inlay template.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <vector>

#include "io/gguf/gguf_writer.h"
#include "tests/tools/program.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kSource[] =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";

// A file with a vocabulary of four tokens and this chat template, unless it is empty.
std::string WriteModel(const std::string& source) {
  GgufWriter writer;
  writer.SetString("general.architecture", "test");
  writer.SetString("tokenizer.ggml.model", "llama");
  writer.SetStrings("tokenizer.ggml.tokens", {"<unk>", "<BOS>", "<EOS>", "a"});
  writer.SetFloat32s("tokenizer.ggml.scores", {0, 0, 0, -1});
  writer.SetInt32s("tokenizer.ggml.token_type", {2, 3, 3, 1});
  writer.SetUint32("tokenizer.ggml.bos_token_id", 1);
  writer.SetUint32("tokenizer.ggml.eos_token_id", 2);
  writer.SetUint32("tokenizer.ggml.unknown_token_id", 0);
  if (!source.empty()) writer.SetString("tokenizer.chat_template", source);
  const std::string path = ScratchPath("model.gguf");
  EXPECT_TRUE(writer.Open(path).ok());
  EXPECT_TRUE(writer.Finish().ok());
  return path;
}

ProgramResult Render(const std::string& source, const std::string& json,
                     std::vector<std::string> more = {}) {
  const std::string path = ScratchPath("chat.jinja");
  WriteFile(path, source);
  more.insert(more.begin(), {"template", "--file", path});
  return RunProgram(more, {.input = json});
}

TEST(Template, RendersTheModelsOwn) {
  const std::string model = WriteModel(kSource);
  const ProgramResult result = RunProgram(
      {"template", "-m", model}, {.input = R"({"messages": [{"role": "user", "content": " a "}],
                               "add_generation_prompt": true})"});
  EXPECT_EQ(result.out, "<BOS><|user|>a<EOS>\n<|assistant|>");
  EXPECT_THAT(result.err, IsEmpty());
  EXPECT_EQ(result.status, 0);
  // What the input says of tokens counts more than the file.
  EXPECT_EQ(
      RunProgram({"template", "-m", model}, {.input = R"({"messages": [], "bos_token": "<s>"})"})
          .out,
      "<s>");
}

TEST(Template, RendersAFileWithAFile) {
  const std::string json = ScratchPath("input.json");
  WriteFile(json, R"({"messages": [{"role": "user", "content": "é"}], "bos_token": "<s>"})");
  const std::string path = ScratchPath("chat.jinja");
  WriteFile(path, kSource);
  EXPECT_EQ(RunProgram({"template", "--file", path, "--input", json}).out, "<s><|user|>é\n");
  EXPECT_EQ(RunProgram({"template", "--file", "-", "--input", json}, {.input = kSource}).out,
            "<s><|user|>é\n");
}

TEST(Template, TellsWhatMessagesWrote) {
  const auto runs = Render(kSource,
                           R"({"messages": [{"role": "user", "content": " </s><|user|> "}],
                               "bos_token": "<s>", "eos_token": "</s>"})",
                           {"-o", "json"})
                        .Json();
  EXPECT_EQ(runs, nlohmann::json::parse(R"([{"from": "template", "text": "<s><|"},
                                            {"from": "message", "text": "user"},
                                            {"from": "template", "text": "|>"},
                                            {"from": "message", "text": "</s><|user|>"},
                                            {"from": "template", "text": "</s>\n"}])"));
  EXPECT_EQ(Render("", "{}", {"-o", "json"}).Json(), nlohmann::json::array());
}

TEST(Template, RefusesInTheTemplatesWords) {
  ExpectError(Render("{{ raise_exception('Roles must alternate') }}", "{}"), 1,
              "inlay: Roles must alternate\n");
}

TEST(Template, NamesFileAndLine) {
  ExpectError(Render("\n{% include 'x' %}", "{}"), 1,
              AllOf(HasSubstr("chat.jinja': line 2"), HasSubstr("include")));
  ExpectError(Render("\n\n{{ messages[0].role.x.y }}", R"({"messages": [{}]})"), 1,
              AllOf(HasSubstr("chat.jinja': line 3"), HasSubstr("'role' is undefined")));
  ExpectError(Render("", "[1"), 1, HasSubstr("not JSON"));
  ExpectError(Render("", "[1]"), 1, HasSubstr("no JSON object"));
  ExpectError(Render("{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}"
                     "{% endfor %}",
                     "{}"),
              1, HasSubstr("steps"));
  ExpectError(RunProgram({"template", "-m", WriteModel("")}, {.input = "{}"}), 1,
              HasSubstr("tokenizer.chat_template"));
  ExpectError(RunProgram({"template", "--file", ScratchPath("none")}, {.input = "{}"}), 1,
              HasSubstr("none"));
}

TEST(Template, TakesOneTemplate) {
  ExpectError(RunProgram({"template", "-m", "a", "--file", "b"}), 2, HasSubstr("--file"));
  ExpectError(RunProgram({"template", "a", "--file", "b"}), 2, HasSubstr("--file"));
}

TEST(Template, RunsInASandbox) {
  EXPECT_EQ(
      RunProgram({"template", "-m", WriteModel("{{ bos_token }}"), "--sandbox"}, {.input = "{}"})
          .out,
      "<BOS>");
}

// While it waits for its input, the template is read already.
TEST(Template, RunsAFileInASandbox) {
  const std::string path = ScratchPath("chat.jinja"), input = ScratchPath("input");
  WriteFile(path, "{{ x }}");
  ASSERT_EQ(mkfifo(input.c_str(), 0600), 0);
  std::string status;
  const ProgramResult result =
      RunProgram({"template", "--file", path, "--input", input, "--sandbox"},
                 {.while_running = [&](pid_t pid) {
                   const int end = open(input.c_str(), O_WRONLY);
                   EXPECT_TRUE(WaitUntil([&] {
                     status = ReadFile("/proc/" + std::to_string(pid) + "/status");
                     return status.find("Seccomp:\t2") != std::string::npos;
                   }));
                   EXPECT_EQ(write(end, "{\"x\": 5}", 8), 8);
                   close(end);
                 }});
  EXPECT_THAT(status, HasSubstr("Seccomp:\t2"));
  EXPECT_EQ(result.out, "5") << result.err;
  unlink(input.c_str());
}

}  // namespace
}  // namespace inlay
