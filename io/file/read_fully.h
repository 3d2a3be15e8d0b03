// Reads all bytes that are there, however many calls of the system that takes.
#ifndef INLAY_IO_FILE_READ_FULLY_H_
#define INLAY_IO_FILE_READ_FULLY_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace inlay {

struct ReadOutcome {
  size_t got = 0;  // bytes, also where the rest failed; fewer than were asked for at the file's end
  int error = 0;   // an errno; 0: the bytes, or those up to the file's end, were read
};

// Fills `into` from the open file `fd`, from its position, or from `offset`, which leaves the
// position as it is. Goes on after signals.
ReadOutcome ReadFully(int fd, absl::Span<uint8_t> into,
                      std::optional<uint64_t> offset = std::nullopt);

// The same for up to `length` bytes from `offset`: fewer only at the file's end. `path` is for
// messages.
absl::StatusOr<std::string> ReadAt(int fd, uint64_t offset, size_t length, const std::string& path);

}  // namespace inlay

#endif  // INLAY_IO_FILE_READ_FULLY_H_
