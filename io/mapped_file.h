// A file mapped into memory, read-only.
#ifndef INLAY_IO_MAPPED_FILE_H_
#define INLAY_IO_MAPPED_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

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

 private:
  MappedFile(const uint8_t* data, size_t size) : data_(data), size_(size) {}

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_MAPPED_FILE_H_
