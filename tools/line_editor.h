// A line of a terminal that can be edited, by libedit.
#ifndef INLAY_TOOLS_LINE_EDITOR_H_
#define INLAY_TOOLS_LINE_EDITOR_H_

#include <memory>
#include <string>

#include "tools/completion.h"
#include "tools/prompt_signals.h"

namespace inlay {

// What came of reading a line.
struct TypedLine {
  enum class End { kLine, kEnd, kSignal };
  End end = End::kEnd;
  std::string text = "";  // of a line; without its newline, but a paste may have some within
  int signal = 0;         // SIGINT, SIGTERM, SIGHUP or SIGQUIT
  bool begun = false;     // before the signal something was typed
};

// Editing, history and its search are libedit's (BSD licence). Its library is loaded when it is
// needed, so that the program starts without it and runs where there is none. Here are only what it
// does not know: that a paste is one piece of text (bracketed paste), what Tab completes, what
// signals mean, and where the line stands when the terminal's size has changed.
class LineEditor {
 public:
  virtual ~LineEditor() = default;

  // Null where the program was built without libedit's header, runs without its library, or on a
  // terminal that can only add text ($TERM is dumb). Standard input is a terminal, and so is
  // `shown_fd`, standard output or standard error, where the line is shown. History is read from
  // the file `history`, and what is typed is appended to it; "" for none. Where that is no regular
  // file or too large, a line says so, and there is no history.
  static std::unique_ptr<LineEditor> Create(Completer completer, const std::string& history,
                                            int shown_fd);

  virtual TypedLine Read(const std::string& prompt, PromptSignals& signals) = 0;

  // Adds a message to the history.
  virtual void Remember(const std::string& message) = 0;

 protected:
  LineEditor() = default;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_LINE_EDITOR_H_
