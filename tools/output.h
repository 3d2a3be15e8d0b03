// Buffered output to a file descriptor, safe for a terminal, which keeps errors instead of losing
// them.
#ifndef INLAY_TOOLS_OUTPUT_H_
#define INLAY_TOOLS_OUTPUT_H_

#include <unistd.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// After the first error nothing more is written. Texts from files and models may contain sequences
// that control a terminal: all text is escaped as Printable() does, however it is split over calls.
class Output {
 public:
  enum class Form {
    kPrintable,      // escaped wherever it goes
    kRawUnlessShown  // escaped on a terminal only: for commands whose output is the exact bytes
  };
  explicit Output(int fd = STDOUT_FILENO, Form form = Form::kPrintable);

  // A character may be split over calls: its first bytes are held until the rest arrives.
  void Write(absl::string_view text);
  // Write(), dimmed where the descriptor is a terminal with colour.
  void WriteDimmed(absl::string_view text);
  // Writes what is complete.
  void Flush();

  // Whether everything that left the buffer has been written.
  bool ok() const { return status_.ok(); }

  // Flushes all; the first error, or ok. Call last.
  absl::Status Finish();

 private:
  void FinishText();

  int fd_;
  bool raw_;
  std::string incomplete_;  // the start of a character, at most 3 bytes
  std::string buffer_;
  absl::Status status_;
};

// Whether colour may be used: on a terminal that is not dumb, unless NO_COLOR is set
// (no-color.org).
bool HasColor(int fd);

// How many columns the terminal has; 80 where it does not say, or is none.
size_t TerminalColumns(int fd);

// Writes text to standard error; errors of that write are ignored.
void WriteNote(absl::string_view text);
// The same, dimmed on a terminal with colour.
void WriteDimmedNote(absl::string_view text);
// WriteNote() of the line "inlay: SENTENCE".
void WriteSentence(absl::string_view sentence);

// Whether a status from an Output says that the reader of its pipe is gone.
bool IsClosedPipe(const absl::Status& status);

}  // namespace inlay

#endif  // INLAY_TOOLS_OUTPUT_H_
