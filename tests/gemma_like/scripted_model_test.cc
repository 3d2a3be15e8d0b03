#include "tests/gemma_like/scripted_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/load_model.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kTemplate[] =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if tools %}<tool_call></tool_call><think></think>{% endif %}"
    "{{ '<|result|>' if messages[-1].role == 'tool' else '<|question|>' }}";

ModelScript Script() {
  return {.chat_template = kTemplate,
          .control_tokens = {"<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>",
                             "</tool_call>", "<|question|>", "<|result|>"},
          .answers = {{"<|question|>",
                       {"<think>", "Add", " them.", "</think>", "<tool_call>", "{\"name\": \"add\"",
                        ", \"arguments\": {}}", "</tool_call>"}},
                      {"<|result|>", {"It", " is", " 5", "."}},
                      {"Count:", {" one", " two"}, /*endless=*/true},
                      {"Toss:", {" heads", "."}},
                      {"Toss:", {" tails", "."}}}};
}

class ScriptedModelTest : public ::testing::Test {
 protected:
  ScriptedModelTest() : model_(Write(Script())) {}

  static LoadedModel Write(const ModelScript& script) {
    const std::string path = TempPath("scripted.gguf");
    const absl::Status status = WriteScriptedModel(script, path);
    EXPECT_TRUE(status.ok()) << status;
    return Must(LoadModel(path));
  }

  std::string Answer(const std::vector<int32_t>& prompt, GenerateOptions options = {}) const {
    const auto cache = Must(model_.engine->CreateCache({.max_length = 1000}));
    return Must(Generate(*model_.engine, *model_.tokenizer, *cache, prompt, options)).text;
  }
  std::string AnswerToText(const std::string& text, GenerateOptions options = {}) const {
    return Answer(Must(model_.tokenizer->Encode(text)), options);
  }
  // Control tokens that mark calls and thoughts are shown.
  std::string AnswerToChat(const std::string& messages) const {
    const ChatRenderer renderer = Must(ChatRenderer::Create(model_));
    const RenderedChat chat = Must(renderer.Render(Must(ChatInput::Parse(messages))));
    GenerateOptions options;
    options.shown_control = MarkerTokens(*model_.tokenizer, chat.answer_format);
    return Answer(chat.tokens, options);
  }

  LoadedModel model_;
};

TEST_F(ScriptedModelTest, TheTemplatesLastTokenDecides) {
  EXPECT_EQ(
      AnswerToChat(R"([{"role": "user", "content": "What is 2 + 3?"}])"),
      "<think>Add them.</think><tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>");
  EXPECT_EQ(AnswerToChat(R"([{"role": "user", "content": "What is 2 + 3?"},
                             {"role": "assistant", "content": ""},
                             {"role": "tool", "content": "5"}])"),
            "It is 5.");
  // A user cannot write what only the template may.
  EXPECT_EQ(AnswerToText("<|result|>"), "");
}

TEST_F(ScriptedModelTest, OtherStartsAreFoundInAnyText) {
  GenerateOptions options;
  options.max_tokens = 5;
  EXPECT_EQ(AnswerToText("Now. Count:", options), " one two one two one");
  EXPECT_EQ(AnswerToText("Now. Count: "), "");
}

TEST_F(ScriptedModelTest, AnswersWithOneStartAreEquallyLikely) {
  GenerateOptions options;
  options.max_tokens = 1;
  std::multiset<std::string> answers;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    options.sampling.seed = seed;
    answers.insert(AnswerToText("Toss:", options));
  }
  EXPECT_EQ(answers.size(), answers.count(" heads") + answers.count(" tails"));
  EXPECT_GT(answers.count(" heads"), 25u);
  EXPECT_GT(answers.count(" tails"), 25u);
}

TEST(ModelScriptTest, IsReadFromJson) {
  const ModelScript script = Must(ParseModelScript(R"({"control_tokens": ["<a>"], "answers": [
      {"start": "<a>", "pieces": ["x", "y"]}, {"start": "b", "pieces": [], "endless": true}]})",
                                                   "template"));
  EXPECT_EQ(script.chat_template, "template");
  EXPECT_THAT(script.control_tokens, ElementsAre("<a>"));
  ASSERT_EQ(script.answers.size(), 2u);
  EXPECT_EQ(script.answers[0].start, "<a>");
  EXPECT_THAT(script.answers[0].pieces, ElementsAre("x", "y"));
  EXPECT_FALSE(script.answers[0].endless);
  EXPECT_TRUE(script.answers[1].endless);
  EXPECT_THAT(ParseModelScript(R"({"control_tokens": []})", "").status().message(),
              HasSubstr("answers"));
}

TEST(ModelScriptTest, LongOnesAreRefused) {
  ModelScript script = Script();
  script.answers.push_back({"Long:", std::vector<std::string>(256, "x")});
  EXPECT_THAT(WriteScriptedModel(script, TempPath("long.gguf")).message(), HasSubstr("states"));
}

}  // namespace
}  // namespace inlay
