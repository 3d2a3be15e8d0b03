// The page's files, as the build puts them into the binary (scripts/embed-files).
#ifndef INLAY_SERVE_PAGE_PAGE_FILES_H_
#define INLAY_SERVE_PAGE_PAGE_FILES_H_

#include "absl/types/span.h"
#include "base/embedded_file.h"

namespace inlay::serve {

absl::Span<const EmbeddedFile> PageFiles();

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PAGE_PAGE_FILES_H_
