#include "tools/answer_printer.h"

#include "absl/strings/str_cat.h"

namespace inlay {

void AnswerPrinter::Print(absl::Span<const AnswerEvent> events) {
  using Kind = AnswerEvent::Kind;
  for (const AnswerEvent& event : events) {
    if (event.kind != last_ && last_ == Kind::kReasoning) EndThoughts();
    last_ = event.kind;
    if (event.kind == Kind::kText) {
      Write(event.text);
    } else if (event.kind == Kind::kReasoning) {
      thoughts_.WriteDimmed(event.text);
      if (thoughts_apart()) continue;
      in_line_ = true;
      empty_ = false;
    } else if (event.kind == Kind::kCallBegin) {
      call_ = absl::StrCat("[calls ", event.text, " ");
    } else if (event.kind == Kind::kCallArguments) {
      call_ += event.text;
    } else {
      if (in_line_) out_.Write("\n");
      Write(absl::StrCat(call_, "]\n"));
    }
  }
  thoughts_.Flush();
  out_.Flush();
}

void AnswerPrinter::EndLine() {
  if (thoughts_apart() && last_ == AnswerEvent::Kind::kReasoning) EndThoughts();
  if (in_line_ || empty_) out_.Write("\n");
  out_.Flush();
}

void AnswerPrinter::Write(absl::string_view text) {
  if (text.empty()) return;
  out_.Write(text);
  in_line_ = text.back() != '\n';
  empty_ = false;
}

void AnswerPrinter::EndThoughts() {
  thoughts_.Write(thoughts_apart() ? "\n" : "\n\n");
  thoughts_.Flush();
  if (!thoughts_apart()) in_line_ = false;
}

}  // namespace inlay
