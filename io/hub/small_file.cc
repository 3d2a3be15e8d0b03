#include "io/hub/small_file.h"

#include <fcntl.h>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/open_file.h"
#include "io/file/read_fully.h"

namespace inlay {

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most) {
  INLAY_ASSIGN_OR_RETURN(const OpenFile file, OpenFile::Open(path, O_RDONLY));
  INLAY_ASSIGN_OR_RETURN(std::string text, ReadAt(file.fd(), 0, most + 1, path));
  if (text.size() <= most) return text;
  return absl::InvalidArgumentError(
      absl::StrCat(path, " is larger than the ", most, " bytes that are read of such a file"));
}

}  // namespace inlay
