// Lines from standard input, with editing and history where it is a terminal.
#ifndef INLAY_TOOLS_LINE_READER_H_
#define INLAY_TOOLS_LINE_READER_H_

#include <optional>
#include <string>

namespace inlay {

// Editing is libedit's (libedit.so.2, BSD licence), loaded at run time so that the program does not
// depend on it; without it the terminal's own editing remains.
class LineReader {
 public:
  LineReader();

  // The next line without its newline; a line that ends with a backslash continues on the next one.
  // Nothing at the end of the input. `prompt` is shown on a terminal only.
  std::optional<std::string> Next(const char* prompt);

  // Whether a person is typing.
  bool interactive() const { return interactive_; }

 private:
  std::optional<std::string> NextPhysical(const char* prompt);

  bool interactive_;
  char* (*readline_)(const char* prompt) = nullptr;
  int (*add_history_)(const char* line) = nullptr;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_LINE_READER_H_
