// The messages that a person types, or that standard input holds line by line.
#ifndef INLAY_TOOLS_LINE_READER_H_
#define INLAY_TOOLS_LINE_READER_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "tools/completion.h"
#include "tools/line_editor.h"

namespace inlay {

// Whether somebody types is a matter of standard input alone. On a terminal a line can be edited;
// without libedit the terminal's own editing remains, pasted lines are messages of their own, and
// there is neither history nor completion. The prompt is shown on standard output, or on standard
// error where that alone is a terminal, as in `inlay chat | tee log`.
class LineReader {
 public:
  // `history` is a file; "": none. To be made before a sandbox is entered, which would keep the
  // library and the terminal's description from being read.
  explicit LineReader(Completer completer = nullptr, const std::string& history = "");

  // The next message without its newline. A line that ends with a backslash continues on the next
  // one; between """ and """ there can be any number of lines. Nothing at the end of the input, for
  // a person also within a message, or when Ctrl-C is pressed twice where nothing was typed; once,
  // or in the middle of a message, it begins anew. `prompt` is shown on a terminal only. Other
  // signals that end programs end this one once the terminal is as it was.
  std::optional<std::string> Next(const char* prompt);

  // The next line, for the answer to a question: not remembered, and Ctrl-C ends it.
  std::optional<std::string> Ask(const char* question);

  // Whether a person is typing.
  bool interactive() const { return interactive_; }

 private:
  TypedLine ReadMessage(const char* prompt);
  TypedLine ReadLine(const char* prompt);
  TypedLine ReadUnedited(const std::string& prompt, PromptSignals& signals);
  // Nothing where there is no terminal to show it.
  void Show(absl::string_view text) const;

  bool interactive_;
  int shown_fd_;  // the terminal with the prompt; -1: none
  std::unique_ptr<LineEditor> editor_;
  std::string unread_;  // of a terminal without an editor: what follows the last line
};

}  // namespace inlay

#endif  // INLAY_TOOLS_LINE_READER_H_
