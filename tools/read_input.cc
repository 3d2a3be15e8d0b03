#include "tools/read_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "io/gguf_value.h"
#include "io/tokenizer.h"

namespace inlay {
namespace {

absl::StatusOr<std::string> ReadAll(int fd, const std::string& name) {
  std::string text;
  std::vector<char> buffer(64 * 1024);
  while (true) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n == 0) return text;
    if (n < 0) {
      if (errno == EINTR) continue;
      return absl::UnavailableError(absl::StrCat("cannot read ", name, ": ", std::strerror(errno)));
    }
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > Tokenizer::kLongestText) {
      return absl::OutOfRangeError(
          absl::StrCat(name, " has more than ", Tokenizer::kLongestText, " bytes"));
    }
  }
}

}  // namespace

absl::StatusOr<std::string> ReadInput(const std::string& path) {
  if (path == "-") return ReadAll(STDIN_FILENO, "standard input");
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return absl::NotFoundError(
        absl::StrCat("cannot open ", QuoteForMessage(path), ": ", std::strerror(errno)));
  }
  auto text = ReadAll(fd, QuoteForMessage(path));
  close(fd);
  return text;
}

}  // namespace inlay
