// A file mapped into memory, read-only.
#ifndef INLAY_IO_FILE_MAPPED_FILE_H_
#define INLAY_IO_FILE_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/file/mapping_guard.h"

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
  // memory from then on. What the file has no longer is zeros, and whole() is false. Thread-safe.
  void Read(absl::Span<const uint8_t> range, uint8_t* to) const;

  // Whether all bytes read so far were the file's: false once the file is shorter than it was when
  // it was mapped. Bytes read since it was last true may be zeros instead of the file's. See
  // GuardMappedFiles, without which such a read ends the process.
  bool whole() const;

 private:
  MappedFile(int fd, const uint8_t* data, size_t size, GuardedRange* range)
      : fd_(fd), data_(data), size_(size), range_(range) {}

  int fd_ = -1;  // -1 for a default-constructed object
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  GuardedRange* range_ = nullptr;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_MAPPED_FILE_H_
