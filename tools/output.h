// Buffered bytes to a file descriptor, safe for a terminal, whose errors are kept instead of lost.
#ifndef INLAY_TOOLS_OUTPUT_H_
#define INLAY_TOOLS_OUTPUT_H_

#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// After the first error nothing more is written. What a file or a model says may hold sequences
// that steer a terminal: all text is escaped as Printable() does, whichever pieces it comes in.
class Output {
 public:
  enum class Form {
    kPrintable,      // escaped wherever it goes
    kRawUnlessShown  // escaped on a terminal only: for commands whose output is the exact bytes
  };
  explicit Output(int fd = STDOUT_FILENO, Form form = Form::kPrintable);

  // A character may be split over calls; its start waits for the rest.
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

// Writes text to standard error, for whoever is there: an error of its own is of no interest.
void WriteNote(absl::string_view text);

// Whether a status from an Output says that nobody reads any more what it writes into a pipe.
bool IsClosedPipe(const absl::Status& status);

}  // namespace inlay

#endif  // INLAY_TOOLS_OUTPUT_H_
