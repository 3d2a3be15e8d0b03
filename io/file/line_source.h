// Reads a text line by line. In memory are one line and a piece of what follows.
#ifndef INLAY_IO_FILE_LINE_SOURCE_H_
#define INLAY_IO_FILE_LINE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

class LineSource {
 public:
  struct Line {
    absl::string_view text;  // without its newline
    uint64_t offset = 0;     // of its first byte in the text
    bool ended = false;      // by a newline, not by the text's end
  };
  // The text's next bytes, valid until the next call; empty at its end.
  using NextPiece = std::function<absl::StatusOr<absl::string_view>()>;

  static constexpr size_t kAnyLength = std::numeric_limits<size_t>::max();

  // `name` is for messages. Lines have at most `most` bytes, which bounds the memory.
  LineSource(NextPiece next, std::string name, size_t most)
      : next_(std::move(next)), name_(std::move(name)), most_(most) {}
  // The same of a file that is open for reading, from its beginning on, and stays open as long as
  // the source.
  LineSource(int fd, const std::string& path, size_t most);

  // The next line, valid until the next call; nothing at the text's end. InvalidArgument, naming
  // its number, for a line that is too long.
  absl::StatusOr<std::optional<Line>> Next();

  // Of the line that Next() has returned, from 1.
  uint64_t number() const { return number_; }

 private:
  const NextPiece next_;
  const std::string name_;
  const size_t most_;
  std::string buffer_;  // what was read and not yet returned begins at begin_
  size_t begin_ = 0;
  uint64_t offset_ = 0;  // of buffer_[0] in the text
  uint64_t number_ = 0;
  bool at_end_ = false;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_LINE_SOURCE_H_
