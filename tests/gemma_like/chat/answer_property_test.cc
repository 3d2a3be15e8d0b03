// What holds for any answer, in each format.
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/utf8.h"
#include "gemma_like/chat/answer_parser.h"
#include "nlohmann/json.hpp"
#include "tests/gemma_like/chat/answer_text.h"
#include "tests/gemma_like/chat/shown_answer.h"
#include "tests/repetitions.h"

namespace inlay {
namespace {

using Kind = AnswerEvent::Kind;

// A format and an answer in it.
struct Example {
  AnswerFormat format;
  std::string answer;
};

std::vector<Example> Examples() {
  return {{kQwen, R"(<tool_call>{"name": "f", "arguments": {"x": [1, "b"]}}</tool_call>)"},
          {kQwen, "<tool_call><function=f><parameter=x>1</parameter></function></tool_call>"},
          {kQwen, "<think>Hm. <tool_call>{\"name\": \"f\"}\n{\"name\": \"f\"}</tool_call>"},
          {kQwen, "Hm. <function=f><parameter=x>[1]</parameter></function></tool_call>"},
          {kGemma4, "<|channel>thought\nHm.<|tool_call>call:f{x:.5}"},
          {kQwen,
           "<tool_call><function=f><parameter=x>[\"</function></tool_call>\"]</parameter>"
           "</function></tool_call>"},
          {kQwen, R"(<tool_call>{"name": "f", "arguments": {"x": "C:\dir\users"}</tool_call>)"},
          {kQwen,
           "A <tool_call><function=f><parameter=y><function=f></function></tool_call>"
           "</parameter></function></tool_call> b"},
          {kLfm2, "a\n<|tool_call_start|>[f(x={1: 2, 1: 3}, x=4)]<|tool_call_end|> b"},
          {kGemma4, R"(<|tool_call>call:f{x:1,y:<|"|>b<|"|>}<tool_call|>)"},
          {kFunctionGemma, "<start_function_call>call:f{x:<escape>b<escape>}<end_function_call>"},
          {kLfm2, "<|tool_call_start|>[f(x=1, y='b'), g()]<|tool_call_end|>"},
          {kLfm2, "<|tool_call_start|>[f(x=1_0, y=\"\"\"b\"\"\", z={.5: rb'c'})]"},
          {kLfm2, R"(<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>)"},
          {kLfm2, "<|tool_call_start|>[f(x='<|tool_call_end|>')]<|tool_call_end|>"},
          {kNemotron2, R"(<TOOLCALL>[{"name": "f", "arguments": {}}, {"name": "g"}]</TOOLCALL>)"},
          {kGranite3, R"(<think>a</think><response>b</response><|tool_call|>[{"name": "f"}])"},
          {kMistral, R"([THINK]a[/THINK][TOOL_CALLS]f[ARGS]{"x": -1.5e3})"}};
}

const std::vector<std::string>& Words() {
  static const auto& words = *new std::vector<std::string>(absl::StrSplit(
      "<tool_call>~</tool_call>~{~}~[~]~\"name\": \"f\"~\"arguments\": ~, ~\"~:~1~<function=f>~"
      "</function>~<parameter=x>~</parameter>~\n~ ~<think>~</think>~<~\\u00e9~\\ud800~true~"
      "<|tool_call_start|>~<|tool_call_end|>~f(~)~x=~'~call:f{~<|tool_call>~<tool_call|>~<|\"|>~"
      "[TOOL_CALLS]~[ARGS]~<|tool_call|>~<TOOLCALL>~</TOOLCALL>~é~<escape>~<end_function_call>~"
      "\"\"\"~.5~<|channel>thought~<channel|>",
      '~'));
  return words;
}

// The JSON of each complete call.
std::vector<std::string> Arguments(const std::vector<AnswerEvent>& events) {
  std::vector<std::string> all;
  std::string arguments;
  for (const AnswerEvent& event : events) {
    if (event.kind == Kind::kCallBegin) arguments.clear();
    if (event.kind == Kind::kCallArguments) arguments += event.text;
    if (event.kind == Kind::kCallEnd) all.push_back(arguments);
  }
  return all;
}

// Answers with a few words put in or taken out.
TEST(AnswerParserTest, CompleteCallsHaveArgumentsInAnyAnswer) {
  const AnswerParserOptions tools =
      WithTools(R"([{"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}])");
  std::mt19937 random(5);
  int calls = 0;
  for (int i = 0; i < Repetitions(1000); ++i) {
    for (auto [format, text] : Examples()) {
      for (size_t n = random() % 4; n > 0; --n) {
        const size_t at = random() % text.size();
        const std::string& word = Words()[random() % Words().size()];
        text.replace(at, random() % 3, random() % 3 == 0 ? "" : word);
      }
      const auto events = ParseAllWays(format, text, tools);
      if (!IsValidUtf8(text)) continue;  // and so are arguments that are JSON
      for (const std::string& arguments : Arguments(events)) {
        ++calls;
        EXPECT_TRUE(nlohmann::json::parse(arguments, nullptr, false).is_object()) << text << "\n"
                                                                                  << arguments;
      }
    }
  }
  EXPECT_GT(calls, Repetitions(5000));
}

// What takes quadratic time does not end here.
TEST(AnswerParserTest, TakesLinearTime) {
  constexpr size_t kLength = Repetitions(40'000);
  const AnswerParserOptions tools =
      WithTools(R"([{"name": "f", "parameters": {"properties": {"x": {"type": "array"}}}}])");
  for (const auto& [format, answer] : Examples()) {
    std::vector<std::string> words = Words();
    words.push_back(answer);
    words.push_back(std::string(format.call_begin) + "{\"");
    words.push_back("]" + std::string(format.call_end));
    words.push_back(
        absl::StrCat(format.call_begin, "call:f{a:", format.quote, "}", format.call_end));
    words.push_back("<tool_call><function=f><parameter=x>[\"</function></tool_call>");
    words.push_back("<tool_call><function=f><parameter=x>1</function></tool_call>");
    words.push_back("<tool_call><function=f><parameter=y>1</function></tool_call>");
    words.push_back("<tool_call><function=f><parameter=y><function=f></function></tool_call>");
    words.push_back("<function=f><parameter=y><function=f></function>");
    words.push_back("<function=f><parameter=x>[\"a</function>");
    words.push_back("<function=f><parameter=x>");
    words.push_back(R"({"name": "f"}, )");
    std::vector<std::string> firsts = {std::string(format.call_begin), answer.substr(0, 25)};
    if (!format.think_begin.empty())
      firsts.push_back(absl::StrCat(format.think_begin, "a", format.call_begin));
    if (format.calls == CallSyntax::kTagged)
      firsts.insert(firsts.end(), {"<tool_call><function=f><parameter=x>[\"a",
                                   "<tool_call><function=f><parameter=y><function=f>"});
    for (const std::string& word : words) {
      for (const std::string& first : firsts) {
        std::string text = first;
        while (text.size() < kLength) text += word;
        EXPECT_FALSE(ParseInPieces(format, text, tools, [] { return 7; }).empty());
      }
    }
  }
}

}  // namespace
}  // namespace inlay
