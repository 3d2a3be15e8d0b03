#include "gemma_like/chat/chat_renderer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/chat/builtin_templates.h"
#include "gemma_like/chat/chat.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// A vocabulary with the control tokens of all built-in templates.
std::unique_ptr<Tokenizer> AnyTokenizer() {
  TestVocabulary vocabulary = SpmBase();
  for (const char* token :
       {"<start_of_turn>", "<end_of_turn>", "<|turn>", "<turn|>", "<|think|>", "<|im_start|>",
        "<|im_end|>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|user|>",
        "<|boss|>", "<think>", "</think>", "<tool_call>", "</tool_call>"}) {
    vocabulary.Add(token, kControl);
  }
  vocabulary.flags = {{"add_bos_token", true}, {"add_space_prefix", false}};
  return MustLoad(vocabulary);
}

ChatInput Input(const json& messages, const json& tools = nullptr,
                const json& variables = json::object()) {
  return Must(ChatInput::Parse(messages.dump(), tools.dump(), variables.dump()));
}

json Said(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

json List(json::initializer_list_t items) { return json::array(items); }

class ChatRendererTest : public testing::Test {
 protected:
  ChatRenderer Of(const char* source) {
    return Must(ChatRenderer::CreateFrom(*tokenizer_, source));
  }
  // The text of the rendered chat, control tokens in brackets.
  std::string Rendered(const char* source, const ChatInput& input) {
    return Show(*tokenizer_, Must(Of(source).Render(input)).tokens);
  }
  absl::Status Error(const char* source, const ChatInput& input) {
    return Of(source).Render(input).status();
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = AnyTokenizer();
};

constexpr char kPlain[] =
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% if thinks %}<think>\n{% endif %}"
    "{% endif %}";

// The built-in template of a file that has none, turn by turn.
TEST_F(ChatRendererTest, BuiltInTemplatesWriteWhatTheFixedFormatsWrite) {
  const LoadedModel bard = LoadBard();
  for (const BuiltinChat& built_in_chat : BuiltinChats()) {
    SCOPED_TRACE(built_in_chat.name);
    const ChatTemplate built_in = built_in_chat.format;
    const auto fixed = Must(FixedChatFormat::Create(*tokenizer_, built_in));
    const auto renderer = Must(ChatRenderer::Create(*bard.file, *tokenizer_, built_in));
    for (const std::string system : {"", "Be <end_of_turn> brief. "}) {
      json messages = json::array();
      if (!system.empty()) messages.push_back(Said("system", system));
      std::vector<int32_t> conversation;
      for (const std::string user : {"Hi there", "<|im_end|> a\nb", " c "}) {
        const auto more = conversation.empty() ? fixed.FirstTurn(system, user)
                                               : fixed.NextTurn(conversation, user);
        ASSERT_TRUE(more.ok()) << more.status();
        conversation.insert(conversation.end(), more->begin(), more->end());
        messages.push_back(Said("user", user));
        const RenderedChat chat = Must(renderer.Render(Input(messages)));
        EXPECT_EQ(Show(*tokenizer_, chat.tokens), Show(*tokenizer_, conversation));
        EXPECT_EQ(chat.tokens, conversation);
        EXPECT_FALSE(chat.in_thinking);
        const std::string answer = user[0] == 'H' ? "An answer" : "Lines\n";
        const auto tokens = Must(tokenizer_->Encode(answer, {.add_bos = false}));
        conversation.insert(conversation.end(), tokens.begin(), tokens.end());
        messages.push_back(Said("assistant", answer));
      }
    }
    EXPECT_THAT(renderer.Render(Input(List({Said("user", "u")}), List({{{"type", "function"}}})))
                    .status()
                    .message(),
                HasSubstr("takes no tools"));
  }
  EXPECT_THAT(
      ChatRenderer::Create(*bard.file, *bard.tokenizer, ChatTemplate::kGemma).status().message(),
      HasSubstr("needs the token '<start_of_turn>'"));
}

// With and without a system text.
TEST_F(ChatRendererTest, TheBuiltInTemplateOfGemma4CanAskForThoughts) {
  const LoadedModel bard = LoadBard();
  const auto renderer = Must(ChatRenderer::Create(*bard.file, *tokenizer_, ChatTemplate::kGemma4));
  EXPECT_EQ(renderer.answer_format(false).think_end, "<channel|>");
  const auto rendered = [&](const json& messages) {
    const ChatInput input = Input(messages, nullptr, {{"enable_thinking", true}});
    return Show(*tokenizer_, Must(renderer.Render(input)).tokens);
  };
  EXPECT_EQ(rendered(List({Said("user", "Hi")})),
            "[<s>][<|turn>]system\n[<|think|>]\n[<turn|>]\n[<|turn>]user\nHi[<turn|>]\n"
            "[<|turn>]model\n");
  EXPECT_EQ(rendered(List({Said("system", "Be brief."), Said("user", "Hi")})),
            "[<s>][<|turn>]system\n[<|think|>]\nBe brief.[<turn|>]\n[<|turn>]user\nHi[<turn|>]\n"
            "[<|turn>]model\n");
}

TEST_F(ChatRendererTest, CountsTheTokensBeforeTheGenerationPrompt) {
  const json messages = List({Said("user", "Hi")});
  ChatInput input = Input(messages);
  RenderedChat chat = Must(Of(kPlain).Render(input));
  EXPECT_EQ(Show(*tokenizer_, chat.tokens),
            "[<s>][<|user|>]Hi[<|im_end|>][<|im_start|>]assistant\n");
  EXPECT_EQ(chat.generation_prompt, 5u);
  input.add_generation_prompt = false;
  chat = Must(Of(kPlain).Render(input));
  EXPECT_EQ(Show(*tokenizer_, chat.tokens), "[<s>][<|user|>]Hi[<|im_end|>]");
  EXPECT_EQ(chat.generation_prompt, 5u);
  // Templates that always write one, or refuse chats without.
  for (const char* source :
       {"{{ messages[0].content }}!",
        "{{ messages[0].content }}!{{ raise_exception('x') if not add_generation_prompt }}"}) {
    chat = Must(Of(source).Render(Input(messages)));
    EXPECT_EQ(chat.generation_prompt, chat.tokens.size());
  }
}

TEST_F(ChatRendererTest, KnowsWhetherTheModelIsThinking) {
  const auto thinks = [&](const std::string& source, const json& variables) {
    const RenderedChat chat =
        Must(Of(source.c_str()).Render(Input(List({Said("user", "<think>")}), nullptr, variables)));
    return chat.in_thinking;
  };
  const std::string knows = "{# </think> #}";
  EXPECT_FALSE(thinks(kPlain, {{"thinks", true}}));  // a model without thoughts
  EXPECT_TRUE(thinks(kPlain + knows, {{"thinks", true}}));
  EXPECT_FALSE(thinks(kPlain + knows, {{"thinks", false}}));
  EXPECT_TRUE(thinks("{{ messages[0].content }}<think>\n" + knows, json::object()));
  const std::string said = "{{ messages[0].content }}";
  EXPECT_FALSE(
      thinks(said + "{{ '<think>\n\n</think>\n\n' if add_generation_prompt }}", json::object()));
  EXPECT_FALSE(thinks(said + "{{ '<think></think>' if add_generation_prompt }}", json::object()));
  EXPECT_EQ(
      Must(Of((said + "</think><tool_call>").c_str()).Render(Input(List({Said("user", "a")}))))
          .answer_format.think_begin,
      "<think>");
}

TEST_F(ChatRendererTest, OnlyKnownRolesMakeControlTokens) {
  EXPECT_EQ(Rendered("<|{{ messages[0].role }}|>", Input(List({Said("user", "")}))),
            "[<s>][<|user|>]");
  EXPECT_EQ(Rendered("<|{{ messages[0].role }}|>", Input(List({Said("boss", "")}))),
            "[<s>]<|boss|>");
  const json message = {
      {"role", "assistant"},
      {"content", "<|im_end|>"},
      {"name", "<|im_end|>"},
      {"<|im_end|>", "<|im_end|>"},
      {"tool_calls",
       List({{{"function",
               {{"name", "<|im_end|>"}, {"arguments", {{"<|im_end|>", "<|im_end|>"}}}}}}})}};
  const json tools = List({{{"function", {{"name", "<|im_end|>"}}}}});
  const std::string text =
      Rendered("{{ messages }}{{ messages | tojson }}{{ tools | tojson }}{{ v }}",
               Input(List({message}), tools, {{"v", "<|im_end|>"}}));
  EXPECT_THAT(text, HasSubstr("<|im_end|>"));
  EXPECT_THAT(text, testing::Not(HasSubstr("[<|im_end|>]")));
}

TEST_F(ChatRendererTest, MakesMessagesReady) {
  const json calls = {
      {"role", "assistant"},
      {"content", nullptr},
      {"tool_calls",
       {{{"id", "a"}, {"function", {{"name", "f"}, {"arguments", R"({"x": [1]})"}}}},
        {{"function", {{"name", "g"}, {"arguments", ""}}}},
        {{"function", {{"name", "h"}, {"arguments", "[1"}}}}}}};
  EXPECT_EQ(Rendered("{% for c in messages[0].tool_calls %}{{ c.id }}{{ c.function.name }}"
                     "{{ c.function.arguments is mapping }}{{ c.function.arguments }} {% endfor %}"
                     "{{ messages[0].content is string }}",
                     Input(List({calls}))),
            "[<s>]afTrue{'x': [1]} gTrue{} hFalse[1 True");
  EXPECT_EQ(Rendered("{{ messages[0].content }}-{{ messages[0].tool_calls is defined }}"
                     "{{ messages[1].tool_calls is defined }}{{ tools is none }}",
                     Input({{{"role", "user"}, {"tool_calls", json::array()}},
                            {{"role", "user"}, {"tool_calls", nullptr}}},
                           json::array())),
            "[<s>]-FalseFalseTrue");
}

TEST_F(ChatRendererTest, ADeveloperIsTheSystemOfTemplatesThatKnowNone) {
  const ChatInput input = Input(List({Said("developer", "")}));
  EXPECT_EQ(Rendered("{{ messages[0].role }}", input), "[<s>]system");
  EXPECT_EQ(Rendered("{{ messages[0].role }}{# developer #}", input), "[<s>]developer");
}

TEST_F(ChatRendererTest, PutsThoughtsWhereTheTemplateLooks) {
  json answer = Said("assistant", "Yes");
  answer["reasoning_content"] = "Hm";
  EXPECT_EQ(Rendered("{{ messages[0].reasoning_content }}{{ messages[0].thinking }}"
                     "{{ messages[0].content }}",
                     Input(List({answer}))),
            "[<s>]HmYes");
  EXPECT_EQ(Rendered("{% for message in messages %}{{ message.thinking }}{{ message.content }}"
                     "{% endfor %}",
                     Input(List({answer}))),
            "[<s>]HmYes");
  EXPECT_EQ(
      Rendered("{{ messages[0]['reasoning'] }}{{ messages[0].content }}", Input(List({answer}))),
      "[<s>]HmYes");
  const char* splits =
      "{{ messages[0].content.split('</think>') | length }}{{ messages[0].content }}";
  EXPECT_EQ(Rendered(splits, Input(List({answer}))), "[<s>]2[<think>]\nHm\n[</think>]\n\nYes");
  answer["reasoning_content"] = "";
  EXPECT_EQ(Rendered(splits, Input(List({answer}))), "[<s>]1Yes");
}

// The calls' own markers are control tokens, what is in them is not.
TEST_F(ChatRendererTest, WritesCallsThatTheTemplateLeavesOut) {
  const json message = {
      {"role", "assistant"},
      {"content", "So"},
      {"tool_calls",
       List({{{"function", {{"name", "f"}, {"arguments", {{"a", "<tool_call>\""}}}}}},
             {{"name", "g"}, {"arguments", {{"b", {true, nullptr, {{"c", 1.5}}}}}}}})}};
  EXPECT_EQ(Rendered("{# <tool_call> #}{{ messages[0].content }}", Input(List({message}))),
            "[<s>]So[<tool_call>]\n{\"name\": \"f\", \"arguments\": {\"a\": "
            "\"<tool_call>\\\"\"}}\n[</tool_call>]\n"
            "[<tool_call>]\n{\"name\": \"g\", \"arguments\": {\"b\": [true, null, {\"c\": 1.5}]}}"
            "\n[</tool_call>]");
  EXPECT_EQ(Rendered("{# List of tools: [ #}{{ messages[0].content }}", Input(List({message}))),
            "[<s>]So<|tool_call_start|>[f(a=\"<tool_call>\\\"\"), "
            "g(b=[True, None, {\"c\": 1.5}])]<|tool_call_end|>");
  EXPECT_EQ(
      Rendered("{# <tool_call> tool_calls #}{{ messages[0].content }}", Input(List({message}))),
      "[<s>]So");
  EXPECT_THAT(
      Error("{# <tool_call> #}", Input(List({{{"role", "assistant"}, {"tool_calls", List({1})}}})))
          .message(),
      HasSubstr("has no name"));
}

TEST_F(ChatRendererTest, GivesVariables) {
  EXPECT_EQ(Rendered("{{ bos_token }}{{ eos_token }}{{ enable_thinking }}{{ documents }}",
                     Input(List({Said("user", "")}), nullptr, {{"enable_thinking", false}})),
            "[<s>][</s>]FalseNone");
  for (const char* name :
       {"messages", "tools", "add_generation_prompt", "bos_token", "eos_token"}) {
    EXPECT_THAT(Error(kPlain, Input(List({Said("user", "")}), nullptr, {{name, 1}})).message(),
                HasSubstr(absl::StrCat("'", name, "' is the chat's own")));
  }
  ChatInput input = Input(List({Said("user", "")}));
  input.options.now = absl::FromUnixSeconds(86400);
  input.options.time_zone = absl::UTCTimeZone();
  EXPECT_EQ(Rendered("{{ strftime_now('%Y-%m-%d') }}", input), "[<s>]1970-01-02");
}

TEST_F(ChatRendererTest, SaysWhatIsWrong) {
  EXPECT_THAT(ChatInput::Parse("[", "", "").status().message(), HasSubstr("the messages: "));
  EXPECT_THAT(ChatInput::Parse("[]", "{", "").status().message(), HasSubstr("the tools: "));
  EXPECT_THAT(ChatInput::Parse("[]", "", "[").status().message(), HasSubstr("variables: "));
  EXPECT_THAT(Error(kPlain, Input("hi")).message(), HasSubstr("not a list"));
  EXPECT_THAT(Error(kPlain, Input(List({Said("user", ""), 3}))).message(),
              HasSubstr("message 1: it is not an object"));
  EXPECT_THAT(Error(kPlain, Input(List({{{"content", ""}}}))).message(), HasSubstr("no role"));
  EXPECT_THAT(Error(kPlain, Input(List({{{"role", 1}}}))).message(),
              HasSubstr("role is not a string"));
  EXPECT_THAT(Error(kPlain, Input(List({{{"role", "user"}, {"tool_calls", 1}}}))).message(),
              HasSubstr("tool_calls are not a list"));
  EXPECT_THAT(Error(kPlain, Input(json::array(), 3)).message(), HasSubstr("tools are not a list"));
  EXPECT_THAT(Error(kPlain, Input(json::array(), nullptr, 3)).message(),
              HasSubstr("variables are not an object"));
  EXPECT_EQ(Error("{{ raise_exception('No way') }}", Input(json::array())).message(), "No way");
  EXPECT_THAT(Error("a\n{{ messages[3].x }}", Input(json::array())).message(),
              testing::AllOf(HasSubstr("the chat template: "), HasSubstr("line 2")));
  const auto bad = ChatRenderer::CreateFrom(*tokenizer_, "a\n{% for %}", "mine.jinja").status();
  EXPECT_THAT(bad.message(), testing::AllOf(HasSubstr("mine.jinja: "), HasSubstr("line 2")));
}

class RendererOfFile : public testing::Test {
 protected:
  ~RendererOfFile() override { std::remove(path_.c_str()); }

  absl::StatusOr<ChatRenderer> Create(const std::function<void(GgufWriter&)>& add_keys) {
    file_.reset();  // before it is written over
    WriteChanged(Must(GgufFile::Open(kBardPath)), {.add_keys = add_keys}, path_);
    file_ = std::make_unique<GgufFile>(Must(GgufFile::Open(path_)));
    return ChatRenderer::Create(*file_, *bard_.tokenizer, ChatTemplate::kNone);
  }
  std::string Rendered(const ChatRenderer& renderer, const json& tools) {
    return Show(*bard_.tokenizer,
                Must(renderer.Render(Input(List({Said("user", "u")}), tools))).tokens);
  }

  const LoadedModel bard_ = LoadBard();
  const std::string path_ = TempPath("renderer.gguf");
  std::unique_ptr<GgufFile> file_;
  const json tools_ = List({{{"type", "function"}, {"function", {{"name", "f"}}}}});
};

TEST_F(RendererOfFile, TheTemplateForToolsIsForTools) {
  const auto renderer = Must(Create([](GgufWriter& writer) {
    writer.SetString(kChatTemplateKey, "{{ messages[0].content }} plain");
    writer.SetString(kToolUseTemplateKey, "{{ messages[0].content }} with <tool_call>");
    writer.SetStrings("tokenizer.chat_templates", {"tool_use"});
  }));
  EXPECT_THAT(Rendered(renderer, nullptr), testing::EndsWith("plain"));
  EXPECT_THAT(Rendered(renderer, json::array()), testing::EndsWith("plain"));
  EXPECT_THAT(Rendered(renderer, tools_), testing::EndsWith("with <tool_call>"));
  EXPECT_EQ(renderer.answer_format(false).calls, CallSyntax::kNone);
  EXPECT_EQ(renderer.answer_format(true).calls, CallSyntax::kTagged);
}

TEST_F(RendererOfFile, OneTemplateIsForAll) {
  for (const absl::string_view key : {kChatTemplateKey, kToolUseTemplateKey}) {
    const auto renderer = Must(Create(
        [&](GgufWriter& writer) { writer.SetString(key, "{{ messages[0].content }} all"); }));
    EXPECT_THAT(Rendered(renderer, nullptr), testing::EndsWith("all"));
    EXPECT_THAT(Rendered(renderer, tools_), testing::EndsWith("all"));
  }
}

// As if the file had none: neither template, or the one of the two that is empty.
TEST_F(RendererOfFile, AnEmptyTemplateIsNone) {
  const std::string built_in = Rendered(Must(Create([](GgufWriter&) {})), nullptr);
  const auto of_both = [&](const std::string& plain, const std::string& for_tools) {
    return Must(Create([&](GgufWriter& writer) {
      writer.SetString(kChatTemplateKey, plain);
      writer.SetString(kToolUseTemplateKey, for_tools);
    }));
  };
  EXPECT_EQ(Rendered(of_both("", ""), nullptr), built_in);
  EXPECT_FALSE(HasChatTemplate(*file_));
  for (const bool first : {true, false}) {
    const std::string all = "{{ messages[0].content }} all";
    const ChatRenderer renderer = of_both(first ? all : "", first ? "" : all);
    EXPECT_TRUE(HasChatTemplate(*file_));
    EXPECT_THAT(Rendered(renderer, nullptr), testing::EndsWith("all"));
    EXPECT_THAT(Rendered(renderer, tools_), testing::EndsWith("all"));
  }
}

TEST_F(RendererOfFile, ErrorsNameFileTemplateAndLine) {
  for (const absl::string_view key : {kChatTemplateKey, kToolUseTemplateKey}) {
    const auto renderer = Create([&](GgufWriter& writer) {
      if (key != kChatTemplateKey) writer.SetString(kChatTemplateKey, "good");
      writer.SetString(key, "\n{% extends 'x' %}");
    });
    EXPECT_THAT(renderer.status().message(),
                testing::AllOf(HasSubstr("renderer.gguf: its chat template"), HasSubstr("line 2")));
    EXPECT_EQ(absl::StrContains(renderer.status().message(), "for tools"),
              key == kToolUseTemplateKey);
  }
}

// Run with ThreadSanitizer by scripts/sanitize.
TEST_F(ChatRendererTest, RendersInSeveralThreads) {
  const ChatRenderer renderer = Of(kPlain);
  const ChatInput input =
      Input(List({Said("user", "Hi"), Said("assistant", "a")}), List({{{"x", 1}}}));
  const RenderedChat expected = Must(renderer.Render(input));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) {
        EXPECT_EQ(Must(renderer.Render(input)).tokens, expected.tokens);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace inlay
