// Reads small files that other programs wrote.
#ifndef INLAY_IO_HUB_SMALL_FILE_H_
#define INLAY_IO_HUB_SMALL_FILE_H_

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"

namespace inlay {

// The bytes of a regular file. NotFound and the like where it cannot be read, InvalidArgument where
// it has more than `most` bytes or is no regular file.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t most);

}  // namespace inlay

#endif  // INLAY_IO_HUB_SMALL_FILE_H_
