// A file mapped into memory, read-only.
#ifndef INLAY_IO_FILE_MAPPED_FILE_H_
#define INLAY_IO_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file/mapping_guard.h"
#include "io/file/open_file.h"

namespace inlay {

// Owns the mapping; movable. The bytes keep their address when the object moves.
class MappedFile {
 public:
  // Maps the whole file. Fails when it cannot be opened, is not a regular file (a directory, a
  // pipe) or is empty.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  // The file's contents, starting at a page boundary; empty for a default-constructed object.
  absl::Span<const uint8_t> bytes() const { return {data_, size_}; }

  // Releases the memory of `range`, some of bytes(), until it is read again; for large ranges that
  // are not needed soon.
  void Forget(absl::Span<const uint8_t> range) const;

  // Copies `range`, some of bytes(), to `to` without touching the mapping: for few bytes here and
  // there, around each of which a page fault may map up to 2 MiB that count as this process's
  // memory from then on. What the file has no longer, or what cannot be read, is zeros, and
  // CheckWhole fails from then on. Thread-safe.
  void Read(absl::Span<const uint8_t> range, uint8_t* to) const;

  // DataLoss, which calls the file `name`, unless all bytes read so far were those that the file
  // had when it was mapped: once it is shorter, was modified, or could not be read. Bytes read
  // since it was last OK may be zeros or others than the file had. See GuardMappedFiles, without
  // which a read of what is missing ends the process.
  absl::Status CheckWhole(absl::string_view name) const;

 private:
  OpenFile file_;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  GuardedRange* range_ = nullptr;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_MAPPED_FILE_H_
