// Writes all bytes, however many calls of the system that takes.
#ifndef INLAY_IO_FILE_WRITE_FULLY_H_
#define INLAY_IO_FILE_WRITE_FULLY_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"

namespace inlay {

struct WriteOutcome {
  size_t written = 0;  // bytes, also where the rest failed
  int error = 0;       // an errno; 0: all bytes were written
};

// Writes to the open file `fd`, at its position, or at `offset`, which leaves the position as it
// is. Goes on after signals. EAGAIN is an error as others are: the caller of a descriptor that does
// not wait goes on with what is left of the bytes. A file that takes no byte without telling an
// error is ENOSPC.
WriteOutcome WriteFully(int fd, absl::Span<const uint8_t> bytes,
                        std::optional<uint64_t> offset = std::nullopt);
inline WriteOutcome WriteFully(int fd, absl::string_view text) {
  return WriteFully(fd, AsBytes(text));
}

}  // namespace inlay

#endif  // INLAY_IO_FILE_WRITE_FULLY_H_
