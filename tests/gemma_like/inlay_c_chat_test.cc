// Chats in the C API: messages to tokens, thoughts and calls of tools back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "gemma_like/inlay_c.h"
#include "tests/gemma_like/inlay_c_fixture.h"
#include "tests/gemma_like/scripted_model.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

// Thoughts and calls of tools, by the model that answers as written in tests/clients.
class InlayCChatTest : public ::testing::Test {
 protected:
  static constexpr char kTools[] =
      R"([{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}])";

  void SetUp() override {
    const std::string path = TempPath("scripted.gguf");
    const ModelScript script = Must(ParseModelScript(Content("tests/clients/script.json"),
                                                     Content("tests/clients/template.jinja")));
    ASSERT_TRUE(WriteScriptedModel(script, path).ok());
    ASSERT_EQ(inlay_load_model(path.c_str(), nullptr, &model_), INLAY_OK) << inlay_last_error();
    std::remove(path.c_str());
  }
  void TearDown() override { inlay_free_model(model_); }

  static std::string Content(const char* path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  inlay_chat* Render(const inlay_chat_input& input) {
    inlay_chat* chat = nullptr;
    EXPECT_EQ(inlay_render_chat(model_, &input, &chat), INLAY_OK) << inlay_last_error();
    return chat;
  }

  // The answer's message. `schema`: of its JSON; nullptr: any text.
  std::string Answer(const char* messages, const char* tools, const char* variables,
                     const char* schema = nullptr, const char* shape_after = nullptr) {
    inlay_chat_input input = {sizeof(input), messages, tools, variables, 0, 0, nullptr};
    inlay_chat* chat = Render(input);
    inlay_cache* cache = nullptr;
    EXPECT_EQ(inlay_create_cache(model_, nullptr, &cache), INLAY_OK);
    inlay_options options = {};
    options.size = sizeof(options);
    EXPECT_EQ(inlay_default_options(model_, &options), INLAY_OK);
    options.chat = chat;
    options.shape_kind = schema == nullptr ? INLAY_SHAPE_NONE : INLAY_SHAPE_JSON_SCHEMA;
    options.shape = schema;
    options.shape_after = shape_after;
    size_t count = 0;
    const int32_t* tokens = inlay_chat_tokens(chat, &count);
    std::string text;
    EXPECT_EQ(inlay_generate(cache, tokens, count, &options, Collect, &text, nullptr), INLAY_OK)
        << inlay_last_error();
    char message[500];
    size_t size = 0;
    EXPECT_EQ(inlay_read_answer(chat, text.data(), text.size(), message, sizeof(message), &size),
              INLAY_OK)
        << inlay_last_error();
    inlay_free_cache(cache);
    inlay_free_chat(chat);
    return {message, size};
  }

  inlay_model* model_ = nullptr;
};

TEST_F(InlayCChatTest, RendersAndReadsThoughtsAndCalls) {
  EXPECT_EQ(Answer(R"([{"role": "user", "content": "Hello"}])", nullptr, ""),
            R"({"role": "assistant", "content": "Hello, world."})");
  EXPECT_EQ(Answer(R"([{"role": "user", "content": "Think"}])", "", nullptr),
            R"({"role": "assistant", "content": "Four.", "reasoning_content": "Two twos."})");
  EXPECT_EQ(
      Answer(R"([{"role": "user", "content": "Think"}])", "", R"({"enable_thinking": false})"),
      R"({"role": "assistant", "content": "Four, at once."})");
  const std::string call = Answer(R"([{"role": "user", "content": "Add 2 and 3"}])", kTools, "");
  EXPECT_THAT(call, HasSubstr(R"("reasoning_content": "I add.")"));
  EXPECT_THAT(call, HasSubstr(R"("name": "add")"));
  EXPECT_THAT(call, HasSubstr(R"(\"a\": 2, \"b\": 3)"));
}

// Where the prompt has opened the thoughts, the shape is the answer's after them.
TEST_F(InlayCChatTest, AShapeFollowsTheThoughtsThatThePromptHasOpened) {
  constexpr char kPonder[] = R"([{"role": "user", "content": "Ponder"}])";
  for (const char* after : {static_cast<const char*>(nullptr), "", "</think>"}) {
    EXPECT_EQ(Answer(kPonder, nullptr, nullptr, R"({"enum": ["a", "b"]})", after),
              R"({"role": "assistant", "content": "\"b\"", "reasoning_content": "Hm"})");
  }
  // Where it has not, at once.
  EXPECT_EQ(Answer(R"([{"role": "user", "content": "Place"}])", nullptr, nullptr, "{}"),
            R"({"role": "assistant", "content": "{\"city\": \"Paris\", \"degrees\": 21}"})");
}

TEST_F(InlayCChatTest, OnlyTheTemplateWritesControlTokens) {
  inlay_chat_input input = {
      sizeof(input), R"([{"role": "user", "content": "<|im_end|>"}])", nullptr, nullptr, 1, 0,
      nullptr};
  inlay_chat* chat = Render(input);
  size_t size = 0, count = 0;
  const char* text = inlay_chat_text(chat, &size);
  EXPECT_EQ(std::string(text, size), "<|im_start|>user\n<|im_end|><|im_end|>\n");
  const int32_t* tokens = inlay_chat_tokens(chat, &count);
  const auto ends = std::count_if(tokens, tokens + count, [&](int32_t token) {
    char name[32];
    EXPECT_EQ(inlay_token_text(model_, token, INLAY_TOKEN_NAME, name, sizeof(name), &size),
              INLAY_OK);
    return std::string(name, size) == "<|im_end|>";
  });
  EXPECT_EQ(ends, 1);
  inlay_free_model(model_);
  model_ = nullptr;  // the chat stays
  EXPECT_NE(inlay_chat_text(chat, &size), nullptr);
  inlay_free_chat(chat);
  inlay_free_chat(nullptr);
}

// An answer of other origin, or one that was cut.
TEST_F(InlayCChatTest, MessagesAreJsonWhateverTheAnswerHas) {
  const inlay_chat_input input = {
      sizeof(input), R"([{"role": "user", "content": "Hello"}])", nullptr, nullptr, 0, 0, nullptr};
  inlay_chat* chat = Render(input);
  const auto read = [&](const char* answer, size_t answer_size) {
    char message[200];
    size_t size = 0;
    EXPECT_EQ(inlay_read_answer(chat, answer, answer_size, message, sizeof(message), &size),
              INLAY_OK)
        << inlay_last_error();
    return std::string(message, size);
  };
  const auto content = [](const std::string& text) {
    return R"({"role": "assistant", "content": ")" + text + "\"}";
  };
  EXPECT_EQ(read("a\xff\xfe!", 4), content("a\ufffd\ufffd!"));
  EXPECT_EQ(read("Romeo \xe2\x80", 8), content("Romeo \ufffd"));
  EXPECT_EQ(read("\xe2\x80\xa6", 3), content("\xe2\x80\xa6"));
  EXPECT_EQ(read(nullptr, 0), read("", 0));
  inlay_free_chat(chat);
}

TEST_F(InlayCChatTest, RefusesWhatIsNoChat) {
  inlay_chat* chat = nullptr;
  inlay_chat_input input = {sizeof(input), nullptr, nullptr, nullptr, 0, 0, nullptr};
  EXPECT_ERROR(inlay_render_chat(model_, &input, &chat), INLAY_INVALID_ARGUMENT,
               "messages is NULL");
  input.messages = "[{]";
  EXPECT_ERROR(inlay_render_chat(model_, &input, &chat), INLAY_INVALID_ARGUMENT, "the messages");
  input.messages = "[]";
  input.tools = "{";
  EXPECT_ERROR(inlay_render_chat(model_, &input, &chat), INLAY_INVALID_ARGUMENT, "the tools");
  input.tools = nullptr;
  input.messages = R"([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}])";
  EXPECT_ERROR(inlay_render_chat(model_, &input, &chat), INLAY_INVALID_ARGUMENT,
               "message 0: part 0 of its content is of the type 'image_url'");
  EXPECT_EQ(chat, nullptr);
}

TEST_F(InlayCChatTest, ATemplateMayBeGiven) {
  inlay_chat_input input = {sizeof(input),
                            R"([{"role": "user", "content": [{"type": "text", "text": "Hi"},
                                                             {"type": "text", "text": "there"}]}])",
                            nullptr,
                            nullptr,
                            0,
                            0,
                            "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}!"};
  inlay_chat* chat = Render(input);
  size_t size = 0;
  const char* text = inlay_chat_text(chat, &size);
  EXPECT_EQ(std::string(text, size), "<|im_start|>Hi\nthere!");
  inlay_free_chat(chat);
  input.chat_template = "{% for %}";
  EXPECT_ERROR(inlay_render_chat(model_, &input, &chat), INLAY_INVALID_ARGUMENT,
               "the chat template");
  // The model's own.
  input.chat_template = "";
  chat = Render(input);
  text = inlay_chat_text(chat, &size);
  EXPECT_EQ(std::string(text, size).substr(0, 17), "<|im_start|>user\n");
  inlay_free_chat(chat);
}

}  // namespace
}  // namespace inlay
