// Shows an answer of a chat as it comes.
#ifndef INLAY_TOOLS_ANSWER_PRINTER_H_
#define INLAY_TOOLS_ANSWER_PRINTER_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/answer_event.h"
#include "tools/output.h"

namespace inlay {

// Thoughts are dimmed, calls are lines.
class AnswerPrinter {
 public:
  // Thoughts go to `thoughts`, which may be `out` itself.
  AnswerPrinter(Output& out, Output& thoughts) : out_(out), thoughts_(thoughts) {}

  void Print(absl::Span<const AnswerEvent> events);

  // At the end: an answer is at least one line.
  void EndLine();

 private:
  void Write(absl::string_view text);
  // Ends their last line. An empty one follows where the answer does.
  void EndThoughts();
  bool thoughts_apart() const { return &thoughts_ != &out_; }

  Output& out_;
  Output& thoughts_;
  AnswerEvent::Kind last_ = AnswerEvent::Kind::kText;
  bool empty_ = true;
  bool in_line_ = false;
  std::string call_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_ANSWER_PRINTER_H_
