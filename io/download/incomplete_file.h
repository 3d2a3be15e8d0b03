// A file of which there is only a part so far.
#ifndef INLAY_IO_DOWNLOAD_INCOMPLETE_FILE_H_
#define INLAY_IO_DOWNLOAD_INCOMPLETE_FILE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/file/open_file.h"

namespace inlay {

// PATH.incomplete, as huggingface_hub names it: what an earlier process got is kept, and what this
// one gets is kept when it ends in any way, for the next. Errors of a full disk are
// ResourceExhausted and say so.
class IncompleteFile {
 public:
  // Opens the file or makes an empty one. A link of that name is refused.
  static absl::StatusOr<IncompleteFile> Open(const std::string& path);

  IncompleteFile(IncompleteFile&& other) noexcept = default;
  IncompleteFile& operator=(IncompleteFile&&) = delete;
  // Removes an empty one.
  ~IncompleteFile();

  // Bytes that are there.
  uint64_t size() const { return size_; }
  // Bytes that the file system has room for.
  uint64_t Free() const;

  // Calls `act` with the bytes that are there, in pieces.
  absl::Status Read(const std::function<absl::Status(absl::Span<const uint8_t>)>& act) const;
  absl::Status Append(absl::Span<const uint8_t> bytes);
  // Drops all bytes.
  absl::Status Clear();

  // Puts the bytes on the disk and gives the file its whole name, PATH, in one step; a file of that
  // name is replaced. Call at most once, last.
  absl::Status Complete();
  // Removes the file. Call at most once, last.
  void Remove();

 private:
  IncompleteFile(std::string path, std::string name, OpenFile file)
      : path_(std::move(path)),
        name_(std::move(name)),
        file_(std::move(file)),
        size_(static_cast<uint64_t>(file_.info().st_size)) {}

  std::string path_;
  std::string name_;  // path_.incomplete
  OpenFile file_;
  uint64_t size_;
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_INCOMPLETE_FILE_H_
