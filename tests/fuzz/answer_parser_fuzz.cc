// Any answer of a model, in each format: how it is cut changes nothing, no text is lost, and the
// arguments of a complete call are a JSON object.
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "gemma_like/chat/answer_parser.h"
#include "gemma_like/chat/call_json.h"
#include "io/template/json_input.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/gemma_like/chat/answer_text.h"

namespace inlay {
namespace {

// Texts of templates, of all rows of the tables in answer_format.cc.
constexpr absl::string_view kTemplates[] = {
    "</think><tool_call>",        "<|channel><channel|><|tool_call><tool_call|>",
    "<start_function_call>",      "</think>List of tools: [",
    "</think><TOOLCALL>",         "</think><response></response><|tool_call|>",
    "[THINK][/THINK][TOOL_CALLS]"};

constexpr absl::string_view kTools = R"([{"type": "function", "function": {"name": "f",
    "parameters": {"properties": {"n": {"type": "integer"}, "s": {"type": "string"},
                                  "o": {"type": ["object", "null"]}}}}}])";

// Each event is of its kind, and the calls of an answer are numbered from 0.
void CheckCalls(const std::vector<AnswerEvent>& events, bool utf8) {
  using Kind = AnswerEvent::Kind;
  size_t calls = 0;
  std::string arguments;
  for (size_t i = 0; i < events.size(); ++i) {
    const AnswerEvent& event = events[i];
    switch (event.kind) {
      case Kind::kText:
      case Kind::kReasoning:
        INLAY_FUZZ_CHECK(!event.text.empty() && event.call == 0);
        break;
      case Kind::kCallBegin:
        INLAY_FUZZ_CHECK(!event.text.empty() && event.call == calls++);
        arguments.clear();
        break;
      case Kind::kCallArguments:
        INLAY_FUZZ_CHECK(event.call + 1 == calls && events[i - 1].kind == Kind::kCallBegin);
        arguments = event.text;
        break;
      case Kind::kCallEnd: {
        std::string again;
        INLAY_FUZZ_CHECK(event.call + 1 == calls && events[i - 1].call == event.call);
        INLAY_FUZZ_CHECK(!arguments.empty() && arguments[0] == '{');
        INLAY_FUZZ_CHECK(AppendJsonValue(arguments, &again) && again == arguments);
        // A template reads it, unless it has numbers that no template can hold.
        const auto value = jinja::ParseJson(arguments);
        const bool huge = arguments.find_first_of("0123456789") != std::string::npos;
        INLAY_FUZZ_CHECK(!utf8 || huge || value.ok());
        break;
      }
    }
  }
}

// With calls as text, an answer without thoughts is all text.
void CheckText(const AnswerFormat& format, absl::string_view text) {
  AnswerFormat thoughtless = format;
  thoughtless.think_begin = thoughtless.think_end = "";
  const auto events = ParseInPieces(thoughtless, text, {.calls = false}, [] { return size_t{5}; });
  INLAY_FUZZ_CHECK(events.size() == (text.empty() ? 0u : 1u));
  INLAY_FUZZ_CHECK(text.empty() || events[0].text == text);
}

// What begins like calls and has none is text or thoughts as it is, also where these wait for what
// becomes of it.
void CheckNoCalls(const AnswerFormat& format, const jinja::Value& tools, absl::string_view text) {
  AnswerFormat thoughtless = format;
  thoughtless.think_begin = thoughtless.think_end = "";
  for (const bool in_thinking : {false, true}) {
    const auto events = ParseInPieces(thoughtless, text,
                                      {.in_thinking = in_thinking, .calls = true, .tools = tools},
                                      [] { return size_t{3}; });
    const absl::string_view shown = in_thinking ? absl::StripLeadingAsciiWhitespace(text) : text;
    const bool all = events.size() == 1 && events[0].text == shown;
    const bool calls = std::any_of(events.begin(), events.end(), [](const AnswerEvent& event) {
      return event.kind == AnswerEvent::Kind::kCallBegin;
    });
    INLAY_FUZZ_CHECK(all || calls || (shown.empty() && events.empty()));
  }
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  static const auto& tools = *new jinja::Value(*jinja::ParseJson(kTools));
  FuzzInput input(data, size);
  const uint8_t kind = input.Byte();
  const AnswerFormat format = AnswerFormat::Of(kTemplates[kind % std::size(kTemplates)]);
  const AnswerParserOptions options{.in_thinking = (kind & 64) != 0, .calls = true, .tools = tools};
  size_t cut = input.Byte();
  const std::string text = input.Rest();
  const auto whole = ParseInPieces(format, text, options, [&] { return text.size(); });
  const auto bytes = ParseInPieces(format, text, options, [] { return size_t{1}; });
  const auto pieces = ParseInPieces(format, text, options, [&] {
    cut = cut * 37 % 251;
    return 1 + cut % 11;
  });
  INLAY_FUZZ_CHECK(whole == bytes && whole == pieces);
  CheckCalls(whole, IsValidUtf8(text));
  CheckText(format, text);
  CheckNoCalls(format, tools, text);
  return 0;
}
