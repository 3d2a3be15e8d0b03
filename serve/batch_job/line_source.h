// Reads a file line by line, in bounded memory.
#ifndef INLAY_SERVE_BATCH_JOB_LINE_SOURCE_H_
#define INLAY_SERVE_BATCH_JOB_LINE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay::serve {

// Reads up to `length` bytes of an open file from `offset`: fewer only at its end. `path` is for
// messages.
absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t length, const std::string& path);

class LineSource {
 public:
  struct Line {
    absl::string_view text;  // without its newline
    uint64_t offset = 0;     // of its first byte in the file
    bool ended = false;      // by a newline, not by the file's end
  };

  // `fd` is open for reading, and stays open as long as the source; `path` is for messages. Lines
  // have at most `most` bytes.
  LineSource(int fd, std::string path, size_t most)
      : fd_(fd), path_(std::move(path)), most_(most) {}

  // The next line, valid until the next call; nothing at the file's end. InvalidArgument, naming
  // its number, for a line that is too long.
  absl::StatusOr<std::optional<Line>> Next();

  // Of the line that Next() has returned, from 1.
  uint64_t number() const { return number_; }

 private:
  const int fd_;
  const std::string path_;
  const size_t most_;
  std::string buffer_;  // what was read and not yet returned begins at begin_
  size_t begin_ = 0;
  uint64_t offset_ = 0;  // of buffer_[0] in the file
  uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_LINE_SOURCE_H_
