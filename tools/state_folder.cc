#include "tools/state_folder.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

// The value of a variable that is an absolute path; "" for any other.
std::string AbsolutePathIn(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value == '/' ? value : "";
}

}  // namespace

absl::StatusOr<std::string> StateFolder(absl::string_view name) {
  std::string folder = AbsolutePathIn("XDG_STATE_HOME");
  if (folder.empty()) {
    folder = AbsolutePathIn("HOME");
    if (folder.empty()) return absl::NotFoundError("neither XDG_STATE_HOME nor HOME is set");
    absl::StrAppend(&folder, "/.local/state");
  }
  absl::StrAppend(&folder, "/inlay/", name);
  // Each folder on the way, with the mode that the specification asks for.
  for (size_t at = 1; at != std::string::npos;) {
    at = folder.find('/', at + 1);
    const std::string part = folder.substr(0, at);
    if (mkdir(part.c_str(), 0700) == 0 || errno == EEXIST) continue;
    struct stat info;
    if (stat(part.c_str(), &info) == 0) continue;  // it is there, where no folder may be made
    return absl::UnavailableError(
        absl::StrCat("cannot make the folder ", part, ": ", std::strerror(errno)));
  }
  return folder;
}

}  // namespace inlay
