#include "serve/service/session_answer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8_stream.h"
#include "gemma_like/generation/generation.h"

namespace inlay::serve {

std::string GeneratedText(const Tokenizer& tokenizer, absl::Span<const int32_t> tokens,
                          absl::Span<const int32_t> shown, std::string* begun) {
  Utf8Stream characters;
  std::string text;
  for (const int32_t token : tokens) text += characters.Push(ShownText(tokenizer, token, shown));
  if (begun == nullptr) return text + characters.Flush();
  *begun = characters.held();
  return text;
}

std::vector<AnswerEvent> SessionAnswerReader::Push(absl::string_view text) {
  absl::StrAppend(&said_, text);
  if (parser_.has_value()) return Collect(parser_->Push(text));
  if (text.empty()) return {};
  return Collect({{.kind = AnswerEvent::Kind::kText, .text = std::string(text)}});
}

std::vector<AnswerEvent> SessionAnswerReader::Finish(bool ended) {
  return parser_.has_value() ? Collect(parser_->Finish(ended)) : std::vector<AnswerEvent>();
}

std::vector<AnswerEvent> SessionAnswerReader::Collect(std::vector<AnswerEvent> events) {
  if (has_enough_) return {};
  for (size_t i = 0; i < events.size(); ++i) {
    const AnswerEvent& event = events[i];
    switch (event.kind) {
      case AnswerEvent::Kind::kText:
        text_ += event.text;
        break;
      case AnswerEvent::Kind::kReasoning:
        reasoning_ += event.text;
        break;
      case AnswerEvent::Kind::kCallBegin:
        calls_.push_back({.id = absl::StrCat("call_", id_, "_", event.call),
                          .name = event.text,
                          .arguments = "",
                          .complete = false});
        break;
      case AnswerEvent::Kind::kCallArguments:
        calls_[event.call].arguments += event.text;
        break;
      case AnswerEvent::Kind::kCallEnd:
        calls_[event.call].complete = true;
        if (!one_call_) break;
        has_enough_ = true;
        events.resize(i + 1);
        return events;
    }
  }
  return events;
}

SessionAnswer SessionAnswerReader::Take() {
  SessionAnswer answer{.said = std::move(said_), .message = {}};
  if (!parser_.has_value()) return answer;
  Json& message = *answer.message;
  message = {{"role", "assistant"}, {"content", std::move(text_)}};
  if (!reasoning_.empty()) message["reasoning_content"] = std::move(reasoning_);
  for (const CallText& call : calls_) {
    if (!call.complete) continue;  // void: its text is in the content
    message["tool_calls"].push_back(
        {{"id", call.id},
         {"type", "function"},
         {"function", {{"name", call.name}, {"arguments", call.arguments}}}});
  }
  return answer;
}

}  // namespace inlay::serve
