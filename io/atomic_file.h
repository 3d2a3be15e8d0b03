// A file that appears under its name only when it is complete: written aside, synced, renamed.
#ifndef INLAY_IO_ATOMIC_FILE_H_
#define INLAY_IO_ATOMIC_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace inlay {

// Without Commit, whatever was written disappears with the object, and an older file of that name
// stays as it was.
class AtomicFile {
 public:
  // Creates a temporary file in the folder of `path`; `executable`: one that may be run.
  static absl::StatusOr<AtomicFile> Create(const std::string& path, bool executable = false);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends; after an error only destruction makes sense. Small pieces are buffered.
  absl::Status Write(absl::Span<const uint8_t> bytes);

  // Flushes to the disk and gives the file its name; call once, last.
  absl::Status Commit();

  // Bytes written so far.
  uint64_t size() const { return size_; }

 private:
  AtomicFile(std::string path, std::string temporary, int fd);
  absl::Status Flush();
  absl::Status WriteAll(absl::Span<const uint8_t> bytes);

  std::string path_;
  std::string temporary_;
  int fd_ = -1;  // -1 when there is no temporary file (any more)
  uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace inlay

#endif  // INLAY_IO_ATOMIC_FILE_H_
