#include "io/download/incomplete_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/file/write_fully.h"

namespace inlay {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;  // of Read

}  // namespace

absl::StatusOr<IncompleteFile> IncompleteFile::Open(const std::string& path) {
  std::string name = absl::StrCat(path, ".incomplete");
  // Without O_NONBLOCK opening a pipe would wait.
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name, " cannot be written"));
  auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  struct stat info;
  if (fstat(fd, &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name, " cannot be examined"));
  if (!S_ISREG(info.st_mode))
    return absl::FailedPreconditionError(absl::StrCat(name, " is not a regular file"));
  std::move(close_fd).Cancel();
  return IncompleteFile(path, std::move(name), fd, static_cast<uint64_t>(info.st_size));
}

IncompleteFile::~IncompleteFile() {
  if (fd_ < 0) return;
  close(fd_);
  if (size_ == 0) Remove();
}

uint64_t IncompleteFile::Free() const {
  struct statvfs info;
  if (fstatvfs(fd_, &info) != 0) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

absl::Status IncompleteFile::Read(
    const std::function<absl::Status(absl::Span<const uint8_t>)>& act) const {
  std::vector<uint8_t> piece(kPieceBytes);
  for (uint64_t offset = 0; offset < size_;) {
    const ssize_t n = pread(fd_, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be read"));
    if (n == 0) return absl::DataLossError(absl::StrCat(name_, " became shorter"));
    INLAY_RETURN_IF_ERROR(act(absl::MakeConstSpan(piece).first(static_cast<size_t>(n))));
    offset += static_cast<uint64_t>(n);
  }
  return absl::OkStatus();
}

absl::Status IncompleteFile::Append(absl::Span<const uint8_t> bytes) {
  const auto [written, error] = WriteFully(fd_, bytes, size_);
  size_ += written;
  if (error == 0) return absl::OkStatus();
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    return absl::ErrnoToStatus(error, absl::StrCat(name_, " cannot be written"));
  return absl::ResourceExhaustedError(
      absl::StrCat("there is no room on the disk after ", size_, " bytes of ", path_,
                   "; they are kept, and another pull goes on from there"));
}

absl::Status IncompleteFile::Clear() {
  if (ftruncate(fd_, 0) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be emptied"));
  size_ = 0;
  return absl::OkStatus();
}

absl::Status IncompleteFile::Complete() {
  if (fsync(fd_) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be put on the disk"));
  if (rename(name_.c_str(), path_.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be renamed"));
  return SyncFolderOf(path_);
}

void IncompleteFile::Remove() { unlink(name_.c_str()); }

}  // namespace inlay
