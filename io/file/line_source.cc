#include "io/file/line_source.h"

#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

constexpr size_t kLineReadSize = size_t{256} << 10;

LineSource::NextPiece PiecesOf(int fd, const std::string& path) {
  return [fd, path, offset = uint64_t{0},
          piece = std::string()]() mutable -> absl::StatusOr<absl::string_view> {
    INLAY_ASSIGN_OR_RETURN(piece, ReadAt(fd, offset, kLineReadSize, path));
    offset += piece.size();
    return piece;
  };
}

}  // namespace

absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t length,
                                   const std::string& path) {
  std::string bytes(length, '\0');
  size_t got = 0;
  while (got < length) {
    const ssize_t n = pread(fd, bytes.data() + got, length - got, static_cast<off_t>(offset + got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be read"));
    if (n == 0) break;
    got += static_cast<size_t>(n);
  }
  bytes.resize(got);
  return bytes;
}

LineSource::LineSource(int fd, const std::string& path, size_t most)
    : LineSource(PiecesOf(fd, path), path, most) {}

absl::StatusOr<std::optional<LineSource::Line>> LineSource::Next() {
  size_t searched = begin_;
  while (true) {
    const size_t end = buffer_.find('\n', searched);
    const bool ended = end != std::string::npos;
    const size_t size = (ended ? end : buffer_.size()) - begin_;
    if (size > most_) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, ":", number_ + 1, ": the line has more than ", most_, " bytes"));
    }
    if (ended || (at_end_ && size > 0)) {
      const Line line{.text = absl::string_view(buffer_).substr(begin_, size),
                      .offset = offset_ + begin_,
                      .ended = ended};
      begin_ += size + (ended ? 1 : 0);
      ++number_;
      return line;
    }
    if (at_end_) return std::nullopt;
    searched = buffer_.size() - begin_;
    buffer_.erase(0, begin_);
    offset_ += begin_;
    begin_ = 0;
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, next_());
    at_end_ = piece.empty();
    buffer_.append(piece.data(), piece.size());
  }
}

}  // namespace inlay
