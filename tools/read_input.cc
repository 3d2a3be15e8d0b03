#include "tools/read_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/gguf/gguf_value.h"

namespace inlay {

Input::Input(int fd, bool owned, std::string name)
    : fd_(fd), owned_(owned), name_(std::move(name)) {}

Input::Input(Input&& other) noexcept
    : fd_(other.fd_),
      owned_(std::exchange(other.owned_, false)),
      name_(std::move(other.name_)),
      buffer_(std::move(other.buffer_)) {}

Input::~Input() {
  if (owned_) close(fd_);
}

absl::StatusOr<Input> Input::Open(const std::string& path) {
  if (path == "-") return Input(STDIN_FILENO, /*owned=*/false, "standard input");
  std::string name = QuoteForMessage(path);
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return absl::NotFoundError(absl::StrCat("cannot open ", name, ": ", std::strerror(errno)));
  return Input(fd, /*owned=*/true, std::move(name));
}

absl::StatusOr<absl::string_view> Input::Next() {
  buffer_.resize(64 * 1024);
  while (true) {
    const ssize_t n = read(fd_, buffer_.data(), buffer_.size());
    if (n >= 0) return absl::string_view(buffer_.data(), static_cast<size_t>(n));
    if (errno == EINTR) continue;
    return absl::UnavailableError(absl::StrCat("cannot read ", name_, ": ", std::strerror(errno)));
  }
}

absl::StatusOr<std::string> Input::ReadAll() {
  std::string text;
  while (true) {
    INLAY_ASSIGN_OR_RETURN(const absl::string_view piece, Next());
    if (piece.empty()) return text;
    absl::StrAppend(&text, piece);
    if (text.size() > kLongestInput) {
      return absl::InvalidArgumentError(
          absl::StrCat(name_, " has more than ", kLongestInput, " bytes"));
    }
  }
}

}  // namespace inlay
