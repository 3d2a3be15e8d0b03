// Chats that templates refuse as they are: what the templates are given instead.
#include "gemma_like/chat/turn_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gemma_like/chat/chat_renderer.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

using nlohmann::json;

std::string FromFile(const std::string& name) {
  std::ifstream file("tests/io/template/templates/" + name, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// Takes everything, in a form that is easy to read.
constexpr char kLenient[] =
    "{% for m in messages %}{{ m.role[0] }}:{{ m.reasoning_content }}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}({{ c.function.arguments.at }}){% endfor %}|{% endfor %}";

// In front of it, what a template refuses.
std::string Refusing(const std::string& condition) {
  return "{% for m in messages %}{% set before = messages[loop.index0 - 1] if loop.index0 else "
         "none "
         "%}{{ raise_exception('no') if " +
         condition + " }}{% endfor %}" + kLenient;
}

// Gemma 3: the system's message begins the first turn of the user, and turns alternate.
constexpr char kAlternating[] =
    "{%- if messages[0].role == 'system' -%}{%- set first = messages[0].content + '\n\n' -%}"
    "{%- set turns = messages[1:] -%}{%- else -%}{%- set first = '' -%}"
    "{%- set turns = messages -%}{%- endif -%}"
    "{%- for m in turns -%}{%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}"
    "{{ raise_exception('roles must alternate') }}{%- endif -%}"
    "{{ m.role[0] }}:{{ first if loop.first }}{{ m.content | trim }}|{%- endfor -%}";

// Qwen 3.5: the system speaks first or never; all else as it comes.
constexpr char kSystemFirst[] =
    "{%- for m in messages -%}{%- if m.role == 'system' and not loop.first -%}"
    "{{ raise_exception('System message must be at the beginning.') }}{%- endif -%}"
    "{{ m.role[0] }}:{{ m.content }}|{%- endfor -%}";

class TurnRulesTest : public testing::Test {
 protected:
  ChatRenderer Of(const std::string& source) {
    return Must(ChatRenderer::CreateFrom(*tokenizer_, source));
  }
  TurnRules Rules(const std::string& source) { return Of(source).turn_rules(false); }
  // The chat as it is written: one letter for each role, a text of its own for each message.
  std::string Written(const std::string& source, const std::string& roles) {
    json messages = json::array();
    for (const char role : roles) {
      const std::string text(1, static_cast<char>('0' + messages.size()));
      messages.push_back({{"role", role == 's'   ? "system"
                                   : role == 'd' ? "developer"
                                   : role == 'u' ? "user"
                                   : role == 'r' ? "tool"
                                                 : "assistant"},
                          {"content", text}});
      if (role != 'c') continue;
      messages.back()["tool_calls"] = {
          {{"id", "call00000"}, {"function", {{"name", "f"}, {"arguments", {{"at", "x"}}}}}}};
    }
    return WrittenJson(source, messages);
  }
  std::string WrittenJson(const std::string& source, const json& messages) {
    const auto text = Of(source).RenderText(Must(ChatInput::Parse(messages.dump())));
    return text.ok() ? std::string(text->bytes()) : std::string(text.status().message());
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MustLoad(SpmBase());
};

TEST_F(TurnRulesTest, TemplatesThatTakeEverythingGetEverything) {
  EXPECT_EQ(Rules(kLenient), TurnRules());
  EXPECT_EQ(Written(kLenient, "ssuusacsrudaa"),
            "s:0|s:1|u:2|u:3|s:4|a:5|a:6(x)|s:7|t:8|u:9|s::|a:;|a:<|");
}

TEST_F(TurnRulesTest, EachRefusalIsFoundAndOnlyWhatIsRefusedIsAdapted) {
  const struct {
    const char *condition, *chat, *written;
    TurnRules rules;
  } kCases[] = {
      {"m.role == 'system'",
       "ssusa",
       "u:0|u:1|u:2|u:3|a:4|",
       {.system_is_user = true, .late_system_is_user = true}},
      {"before and m.role == before.role == 'system'",
       "ssusaus",
       "s:0\n\n1|u:2|s:3|a:4|u:5|s:6|",
       {.one_system = true}},
      {"before and m.role == 'system' and before.role != 'system'",
       "ssusa",
       "s:0|s:1|u:2|u:3|a:4|",
       {.late_system_is_user = true}},
      {"before and m.role == before.role == 'user'",
       "suuuauu",
       "s:0|u:1\n\n2\n\n3|a:4|u:5\n\n6|",
       {.one_user = true}},
      {"before and before.role == 'tool' and m.role == 'user'",
       "ucrruua",
       "u:0|a:1(x)|t:2|t:3\n\n4\n\n5|a:6|",
       {.no_user_after_result = true}},
      {"before and m.role == before.role == 'assistant' and not before.tool_calls",
       "uaaacrcrau",
       "u:0|a:1\n\n2\n\n3\n\n4(x)|t:5|a:6(x)|t:7|a:8|u:9|",
       {.one_assistant = true}},
  };
  for (const auto& c : kCases) {
    const std::string source = Refusing(c.condition);
    EXPECT_EQ(Rules(source), c.rules) << c.condition;
    EXPECT_EQ(Written(source, c.chat), c.written) << c.condition;
  }
}

TEST_F(TurnRulesTest, WhatATemplateLeavesOutIsAdaptedToo) {
  EXPECT_EQ(Written("{% for m in messages if m.role != 'system' %}{{ m.role[0] }}:{{ m.content }}|"
                    "{% endfor %}",
                    "susa"),
            "u:0|u:1|u:2|a:3|");
  // Only the first of the system's messages is read.
  EXPECT_EQ(
      Written("{% for m in messages %}{% if loop.first or m.role != 'system' %}{{ m.role[0] }}:"
              "{{ m.content }}|{% endif %}{% endfor %}",
              "ssusa"),
      "s:0\n\n1|u:2|u:3|a:4|");
}

TEST_F(TurnRulesTest, StrictTemplatesTakeWhatAgentsSend) {
  const struct {
    std::string source;
    const char *chat, *written;
  } kCases[] = {
      {kAlternating, "suusau", "u:0\n\n1\n\n2\n\n3|a:4|u:5|"},
      {kAlternating, "ddudaus", "u:0\n\n1\n\n2\n\n3|a:4|u:5\n\n6|"},
      {kSystemFirst, "sduusaus", "s:0\n\n1|u:2|u:3|u:4|a:5|u:6|u:7|"},
      {FromFile("turns_alternate.jinja"), "sua",
       "<start_of_turn>user\n0\n\n1<end_of_turn>\n<start_of_turn>model\n2<end_of_turn>\n"
       "<start_of_turn>model\n"},
      // The system's word comes between a call and its result, and the user's after it.
      {FromFile("instructions.jinja"), "suscsruau",
       "[INST] 1\n\n2[/INST][TOOL_CALLS][{\"arguments\": {\"at\": \"x\"}, \"name\": \"f\", "
       "\"id\": \"call00000\"}]</s>[TOOL_RESULTS]{\"content\": 5\n\n4\n\n6, \"call_id\": "
       "\"?\"}[/TOOL_RESULTS] 7</s>[INST] 0\n\n8[/INST]"},
  };
  for (const auto& c : kCases) {
    std::string written = Written(c.source, c.chat);
    if (absl::StartsWith(written, "<s>")) written = written.substr(3);
    EXPECT_EQ(written.substr(written.find_first_not_of('\n')), c.written) << c.chat;
  }
}

// The first error stays where adapting does not help, and empty turns are not invented.
TEST_F(TurnRulesTest, TheTemplatesOwnWordsWhereNothingHelps) {
  EXPECT_EQ(Written(kAlternating, "au"), "roles must alternate");
  EXPECT_EQ(Written(kAlternating, "ucru"), "roles must alternate");
  EXPECT_EQ(Written(Refusing("true"), "u"), "no");
  EXPECT_EQ(Rules(Refusing("true")), TurnRules());
  EXPECT_EQ(Rules("{% for i in range(99999) %}{% for j in range(9) %}{% endfor %}{% endfor %}" +
                  Refusing("m.role == 'system'")),
            TurnRules())
      << "takes more steps than it is tried for";
}

TEST_F(TurnRulesTest, JoinsTextsOfListsThoughtsAndCalls) {
  const json call = {
      {{"id", "call00000"}, {"function", {{"name", "f"}, {"arguments", {{"at", 1}}}}}}};
  EXPECT_EQ(WrittenJson(Refusing("before and m.role == before.role == 'assistant'"),
                        {{{"role", "user"}, {"content", "q"}},
                         {{"role", "assistant"}, {"reasoning_content", "Hm. "}, {"content", "a"}},
                         {{"role", "assistant"}, {"content", ""}},
                         {{"role", "assistant"},
                          {"reasoning_content", "So."},
                          {"content", "b"},
                          {"tool_calls", call}}}),
            "u:q|a:Hm. \n\nSo.a\n\nb(1)|");
  const json text = {{"type", "text"}, {"text", "x"}};
  const std::string source = Refusing("before and m.role == before.role == 'user'");
  EXPECT_EQ(WrittenJson(source, {{{"role", "user"}, {"content", {text, text}}},
                                 {{"role", "user"}, {"content", "y"}}}),
            "u:x\nx\n\ny|");
}

// What joins control tokens of the template and texts of messages keeps them apart.
TEST_F(TurnRulesTest, TextsStayMessages) {
  const auto text =
      Must(Of(kAlternating)
               .RenderText(Must(ChatInput::Parse(
                   R"([{"role":"user","content":"a"},{"role":"user","content":"b"}])"))));
  std::string of_messages;
  size_t begin = 0;
  for (const auto& run : text.runs()) {
    if (run.origin == jinja::Origin::kMessage)
      of_messages += std::string(text.bytes().substr(begin, run.end - begin));
    begin = run.end;
  }
  EXPECT_EQ(of_messages, "a\n\nb");
}

// A chat as agents send it, growing: what was written stays, so its computation can be reused.
TEST_F(TurnRulesTest, AGrowingChatIsWrittenAsBefore) {
  const std::vector<std::string> kTurns = {"ssuus", "a", "ssu", "csrs", "cru", "a", "u", "a", "us"};
  for (const std::string& source :
       {std::string(kAlternating), std::string(kSystemFirst), std::string(kLenient),
        Refusing("before and before.role == 'tool' and m.role == 'user'"),
        Refusing("m.role == 'system' and loop.index0 == 3")}) {
    std::string roles, before;
    for (const std::string& turn : kTurns) {
      if (source == kAlternating && turn[0] == 'c') continue;  // knows no tools
      roles += turn;
      std::string written = Written(source, roles);
      // Up to what the last message ends with: "|".
      EXPECT_TRUE(absl::StartsWith(written, before)) << roles << "\n" << before << "\n" << written;
      before = written.substr(0, written.size() - 1);
    }
  }
}

}  // namespace
}  // namespace inlay
