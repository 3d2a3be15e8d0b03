// The page's files, as the build puts them into the binary (scripts/embed-files).
#ifndef INLAY_SERVE_PAGE_PAGE_FILES_H_
#define INLAY_SERVE_PAGE_PAGE_FILES_H_

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace inlay::serve {

struct EmbeddedFile {
  absl::string_view name;  // in serve/page
  absl::string_view content;
};

absl::Span<const EmbeddedFile> PageFiles();

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PAGE_PAGE_FILES_H_
