// The formats of families, and answers in them as one line each, for tests.
#ifndef INLAY_TESTS_GEMMA_LIKE_CHAT_SHOWN_ANSWER_H_
#define INLAY_TESTS_GEMMA_LIKE_CHAT_SHOWN_ANSWER_H_

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/chat/answer_parser.h"
#include "io/template/json_input.h"
#include "tests/gemma_like/chat/answer_text.h"
#include "tests/must.h"

namespace inlay {

inline const AnswerFormat kQwen = AnswerFormat::Of("<think></think><tool_call>");
inline const AnswerFormat kGemma4 =
    AnswerFormat::Of("<|channel>thought<channel|><|tool_call><tool_call|>");
inline const AnswerFormat kFunctionGemma = AnswerFormat::Of("<start_function_call>");
inline const AnswerFormat kLfm2 = AnswerFormat::Of("</think> List of tools: [");
inline const AnswerFormat kNemotron2 = AnswerFormat::Of("</think><TOOLCALL>");
inline const AnswerFormat kGranite3 =
    AnswerFormat::Of("</think><response></response><|tool_call|>");
inline const AnswerFormat kMistral = AnswerFormat::Of("[TOOL_CALLS][THINK][/THINK]");

// "text", "(thoughts)" and "f{...}." for a call, with "!" in place of "." where it has no end; a
// bar between them.
inline std::string Shown(const std::vector<AnswerEvent>& events) {
  using Kind = AnswerEvent::Kind;
  std::string shown;
  bool open = false;
  for (const AnswerEvent& event : events) {
    const bool in_call = event.kind == Kind::kCallArguments || event.kind == Kind::kCallEnd;
    if (open && !in_call) shown += "!";
    open = event.kind == Kind::kCallBegin || event.kind == Kind::kCallArguments;
    if (!shown.empty() && !in_call) shown += "|";
    if (event.kind == Kind::kReasoning) {
      absl::StrAppend(&shown, "(", event.text, ")");
    } else {
      absl::StrAppend(&shown, event.text, event.kind == Kind::kCallEnd ? "." : "");
    }
  }
  return shown + (open ? "!" : "");
}

// Parses the text whole, byte by byte and in random pieces, which must all say the same.
inline std::vector<AnswerEvent> ParseAllWays(const AnswerFormat& format, const std::string& text,
                                             const AnswerParserOptions& options = {}) {
  const auto whole = ParseInPieces(format, text, options, [&] { return text.size(); });
  EXPECT_EQ(ParseInPieces(format, text, options, [] { return 1; }), whole) << text;
  std::mt19937 random(1);
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(ParseInPieces(format, text, options, [&] { return 1 + random() % 9; }), whole);
  return whole;
}

inline std::string ShowAnswer(const AnswerFormat& format, const std::string& text,
                              const AnswerParserOptions& options = {}) {
  return Shown(ParseAllWays(format, text, options));
}

inline AnswerParserOptions WithTools(const char* tools) {
  return {.tools = Must(jinja::ParseJson(tools))};
}

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_CHAT_SHOWN_ANSWER_H_
