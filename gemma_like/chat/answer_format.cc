#include "gemma_like/chat/answer_format.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/match.h"

namespace inlay {
namespace {

// A row holds for templates that have both texts ("" is in every template).
struct ThinkingRow {
  absl::string_view text, other_text;
  absl::string_view begin, end;
  bool anywhere = false;
  absl::string_view text_begin = "", text_end = "";
};

constexpr ThinkingRow kThinkingRows[] = {
    // Gemma 4. Its templates only ever write the channel "thought".
    {"<|channel>", "<channel|>", "<|channel>thought", "<channel|>", true},
    // Granite 3.2 and 3.3.
    {"</think>", "<response></response>", "<think>", "</think>", false, "<response>",
     "</response>"},
    // Qwen 3 and 3.5, Nemotron, LFM2.5, Falcon-H1R, SmolLM3, QwQ.
    {"</think>", "", "<think>", "</think>"},
    // Ministral 3 and Magistral.
    {"[THINK]", "[/THINK]", "[THINK]", "[/THINK]"},
};

struct CallRow {
  absl::string_view text, other_text;
  CallSyntax syntax;
  absl::string_view begin, end, quote = "";
};

constexpr CallRow kCallRows[] = {
    // Gemma 4.
    {"<|tool_call>", "<tool_call|>", CallSyntax::kEscapedText, "<|tool_call>", "<tool_call|>",
     "<|\"|>"},
    // FunctionGemma.
    {"<start_function_call>", "", CallSyntax::kEscapedText, "<start_function_call>",
     "<end_function_call>", "<escape>"},
    // LFM2.5 that writes earlier calls, LFM2, and LFM2.5 that does not.
    {"<|tool_call_start|>", "", CallSyntax::kPython, "<|tool_call_start|>", "<|tool_call_end|>"},
    {"<|tool_list_start|>", "", CallSyntax::kPython, "<|tool_call_start|>", "<|tool_call_end|>"},
    {"List of tools: [", "", CallSyntax::kPython, "<|tool_call_start|>", "<|tool_call_end|>"},
    // Nemotron Nano 2.
    {"<TOOLCALL>", "", CallSyntax::kJson, "<TOOLCALL>", "</TOOLCALL>"},
    // Granite 3.
    {"<|tool_call|>", "", CallSyntax::kJson, "<|tool_call|>", ""},
    // Mistral.
    {"[TOOL_CALLS]", "", CallSyntax::kNamedJson, "[TOOL_CALLS]", ""},
    // With JSON: Hermes, Qwen 2.5 and 3, Granite 4, Falcon-H1, SmolLM3. With more tags: Qwen 3.5,
    // Qwen3-Coder, Nemotron 3, Granite 4.2. The answer shows which.
    {"<tool_call>", "", CallSyntax::kTagged, "<tool_call>", "</tool_call>"},
};

template <class Row, size_t kRows>
const Row* FindRow(const Row (&rows)[kRows], absl::string_view source) {
  const Row* found = std::find_if(std::begin(rows), std::end(rows), [&](const Row& row) {
    return absl::StrContains(source, row.text) && absl::StrContains(source, row.other_text);
  });
  return found == std::end(rows) ? nullptr : found;
}

}  // namespace

AnswerFormat AnswerFormat::Of(absl::string_view source) {
  AnswerFormat format;
  if (const ThinkingRow* row = FindRow(kThinkingRows, source); row != nullptr) {
    format.think_begin = row->begin;
    format.think_end = row->end;
    format.thinks_anywhere = row->anywhere;
    format.text_begin = row->text_begin;
    format.text_end = row->text_end;
  }
  if (const CallRow* row = FindRow(kCallRows, source); row != nullptr) {
    format.calls = row->syntax;
    format.call_begin = row->begin;
    format.call_end = row->end;
    format.quote = row->quote;
  }
  return format;
}

}  // namespace inlay
