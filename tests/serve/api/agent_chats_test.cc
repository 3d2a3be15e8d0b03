// What coding agents send, turn by turn, as templates write it that want user and assistant to take
// turns.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "gemma_like/chat/chat_renderer.h"
#include "io/json/parse_json.h"
#include "serve/api/parse_call.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/must.h"

namespace inlay::serve {
namespace {

// In the manner of Gemma 3, with results of tools, and of Mistral.
constexpr char kAlternating[] =
    "{%- set said = namespace(n=0) -%}"
    "{%- for m in messages -%}"
    "{%- if m.role == 'system' and not loop.first -%}{{ raise_exception('system') }}{%- endif -%}"
    "{%- if m.role == 'user' or (m.role == 'assistant' and not m.tool_calls) -%}"
    "{%- if (m.role == 'user') != (said.n % 2 == 0) -%}{{ raise_exception('turns') }}{%- endif -%}"
    "{%- set said.n = said.n + 1 -%}{%- endif -%}"
    "[{{ m.role }}]{{ m.content }}"
    "{%- for c in m.tool_calls or [] -%}({{ c.function.name }}){%- endfor -%}"
    "[/]{%- endfor -%}";

class AgentChatsTest : public testing::Test {
 protected:
  // The chat of a request, up to where the last message ends.
  std::string Written(Protocol protocol, const Json& body) {
    const Call call = Must(ParseCall(protocol, DumpJson(body)));
    const auto input = Must(ChatInput::From(*call.messages, *call.tools, Json()));
    const std::string text(Must(renderer_.RenderText(input)).bytes());
    return absl::StrReplaceAll(text.substr(0, text.size() - 3), {{"\n\n", "+"}});
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MustLoad(SpmBase());
  const ChatRenderer renderer_ = Must(ChatRenderer::CreateFrom(*tokenizer_, kAlternating));
};

Json Message(const char* role, const char* text, const char* type = "input_text") {
  return {{"type", "message"}, {"role", role}, {"content", {{{"type", type}, {"text", text}}}}};
}

TEST_F(AgentChatsTest, Codex) {
  Json body = {
      {"model", "m"},
      {"instructions", "Base."},
      {"tools", {{{"type", "function"}, {"name", "shell"}, {"parameters", Json::object()}}}},
      {"input", Json::array()}};
  const auto turn = [&](const std::vector<Json>& items) {
    for (const Json& item : items) body["input"].push_back(item);
    return Written(Protocol::kResponses, body);
  };
  const std::string first = turn({Message("developer", "Rules."), Message("user", "<environment/>"),
                                  Message("user", "List.")});
  EXPECT_EQ(first, "[system]Base.+Rules.[/][user]<environment/>+List.");
  const std::string second =
      turn({Message("assistant", "I look.", "output_text"),
            {{"type", "function_call"}, {"call_id", "c"}, {"name", "shell"}, {"arguments", "{}"}},
            {{"type", "function_call_output"}, {"call_id", "c"}, {"output", "a.txt"}}});
  EXPECT_EQ(second, first + "[/][assistant]I look.(shell)[/][tool]a.txt");
  const std::string third =
      turn({Message("assistant", "a.txt.", "output_text"),
            Message("developer", "Now in another mode."), Message("user", "Thanks.")});
  EXPECT_EQ(third, second + "[/][assistant]a.txt.[/][user]Now in another mode.+Thanks.");
}

TEST_F(AgentChatsTest, ClaudeCode) {
  Json body = {{"model", "m"},
               {"max_tokens", 9},
               {"system", {{{"type", "text"}, {"text", "Base."}}}},
               {"tools", {{{"name", "shell"}, {"input_schema", Json::object()}}}},
               {"messages", Json::array()}};
  const auto turn = [&](const std::vector<Json>& messages) {
    for (const Json& message : messages) body["messages"].push_back(message);
    return Written(Protocol::kMessages, body);
  };
  const auto text = [](const char* of) { return Json{{"type", "text"}, {"text", of}}; };
  const std::string first =
      turn({{{"role", "user"}, {"content", {text("<system-reminder/>"), text("List.")}}},
            {{"role", "system"}, {"content", "Of agents there are these."}}});
  EXPECT_EQ(first, "[system]Base.[/][user]<system-reminder/>\nList.+Of agents there are these.");
  const std::string second =
      turn({{{"role", "assistant"},
             {"content",
              {{{"type", "tool_use"}, {"id", "t"}, {"name", "shell"}, {"input", Json::object()}}}}},
            {{"role", "user"},
             {"content",
              {{{"type", "tool_result"}, {"tool_use_id", "t"}, {"content", "a.txt"}},
               text("<system-reminder>Be brief.</system-reminder>")}}}});
  EXPECT_EQ(second, first +
                        "[/][assistant](shell)[/][tool]a.txt+<system-reminder>Be brief."
                        "</system-reminder>");
  const std::string third = turn(
      {{{"role", "assistant"}, {"content", "a.txt."}}, {{"role", "user"}, {"content", "Ok."}}});
  EXPECT_EQ(third, second + "[/][assistant]a.txt.[/][user]Ok.");
}

}  // namespace
}  // namespace inlay::serve
