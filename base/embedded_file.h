// A file that the build has put into the binary (scripts/embed-files).
#ifndef INLAY_BASE_EMBEDDED_FILE_H_
#define INLAY_BASE_EMBEDDED_FILE_H_

#include "absl/strings/string_view.h"

namespace inlay {

struct EmbeddedFile {
  absl::string_view name;  // without its folder
  absl::string_view content;
};

}  // namespace inlay

#endif  // INLAY_BASE_EMBEDDED_FILE_H_
