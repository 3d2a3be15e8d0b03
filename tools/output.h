// Buffered bytes to a file descriptor, whose errors are kept instead of lost.
#ifndef INLAY_TOOLS_OUTPUT_H_
#define INLAY_TOOLS_OUTPUT_H_

#include <unistd.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay {

// After the first error nothing more is written.
class Output {
 public:
  explicit Output(int fd = STDOUT_FILENO) : fd_(fd) {}

  void Write(absl::string_view bytes);
  void Flush();

  // Whether everything that left the buffer has been written.
  bool ok() const { return status_.ok(); }

  // Flushes; the first error, or ok. Call last.
  absl::Status Finish();

 private:
  int fd_;
  std::string buffer_;
  absl::Status status_;
};

}  // namespace inlay

#endif  // INLAY_TOOLS_OUTPUT_H_
