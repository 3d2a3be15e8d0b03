// The licences that go with every copy of the binary, which holds them itself.
#ifndef INLAY_BASE_LICENSE_FILES_H_
#define INLAY_BASE_LICENSE_FILES_H_

#include "absl/types/span.h"
#include "base/embedded_file.h"

namespace inlay {

// LICENSE, Inlay's own, and NOTICE: the works that binaries contain parts of, each with its
// licence.
absl::Span<const EmbeddedFile> LicenseFiles();

}  // namespace inlay

#endif  // INLAY_BASE_LICENSE_FILES_H_
