#include "io/download/incomplete_file.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/file/read_fully.h"
#include "io/file/write_fully.h"

namespace inlay {
namespace {

constexpr size_t kPieceBytes = size_t{1} << 20;  // of Read

}  // namespace

absl::StatusOr<IncompleteFile> IncompleteFile::Open(const std::string& path) {
  std::string name = absl::StrCat(path, ".incomplete");
  INLAY_ASSIGN_OR_RETURN(OpenFile file, OpenFile::Open(name, O_RDWR | O_CREAT | O_NOFOLLOW));
  return IncompleteFile(path, std::move(name), std::move(file));
}

IncompleteFile::~IncompleteFile() {
  if (file_.fd() >= 0 && size_ == 0) Remove();
}

uint64_t IncompleteFile::Free() const {
  struct statvfs info;
  if (fstatvfs(file_.fd(), &info) != 0) return std::numeric_limits<uint64_t>::max();
  return static_cast<uint64_t>(info.f_bavail) * info.f_frsize;
}

absl::Status IncompleteFile::Read(
    const std::function<absl::Status(absl::Span<const uint8_t>)>& act) const {
  std::vector<uint8_t> piece(kPieceBytes);
  for (uint64_t offset = 0; offset < size_;) {
    const auto [got, error] = ReadFully(file_.fd(), absl::MakeSpan(piece), offset);
    if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat(name_, " cannot be read"));
    if (got == 0) return absl::DataLossError(absl::StrCat(name_, " became shorter"));
    INLAY_RETURN_IF_ERROR(act(absl::MakeConstSpan(piece).first(got)));
    offset += got;
  }
  return absl::OkStatus();
}

absl::Status IncompleteFile::Append(absl::Span<const uint8_t> bytes) {
  const auto [written, error] = WriteFully(file_.fd(), bytes, size_);
  size_ += written;
  if (error == 0) return absl::OkStatus();
  if (error != ENOSPC && error != EDQUOT && error != EFBIG)
    return absl::ErrnoToStatus(error, absl::StrCat(name_, " cannot be written"));
  return absl::ResourceExhaustedError(
      absl::StrCat("there is no room on the disk after ", size_, " bytes of ", path_,
                   "; they are kept, and another pull goes on from there"));
}

absl::Status IncompleteFile::Clear() {
  if (ftruncate(file_.fd(), 0) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be emptied"));
  size_ = 0;
  return absl::OkStatus();
}

absl::Status IncompleteFile::Complete() {
  if (fsync(file_.fd()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be put on the disk"));
  if (rename(name_.c_str(), path_.c_str()) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat(name_, " cannot be renamed"));
  return SyncFolderOf(path_);
}

void IncompleteFile::Remove() { unlink(name_.c_str()); }

}  // namespace inlay
