#include "io/file/line_source.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/read_fully.h"

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
