#include "io/file/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/atomic_file.h"
#include "io/file/has_name.h"

namespace inlay {
namespace {

int OpenLockFile(const std::string& name) {
  const int fd = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
  if (fd >= 0 || errno != EACCES) return fd;
  // Another user's file, left behind by a killed process: read access is enough to lock it.
  const int readable = open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  // Without a lock file this is ENOENT, which would hide that this process may not create one.
  if (readable < 0) errno = EACCES;
  return readable;
}

bool IsEmptyFile(int fd) {
  struct stat info;
  return fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == 0;
}

}  // namespace

absl::StatusOr<FileLock> FileLock::Acquire(const std::string& path) {
  INLAY_ASSIGN_OR_RETURN(const std::string target, FollowLinks(path));
  const std::string name = absl::StrCat(target, ".lock");
  while (true) {
    const int fd = OpenLockFile(name);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be locked"));
    auto close_fd = absl::MakeCleanup([fd] { close(fd); });
    if (!IsEmptyFile(fd)) {
      return absl::FailedPreconditionError(
          absl::StrCat(path, " cannot be locked: ", name, " exists and is no lock file"));
    }
    const bool locked = flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (!locked && errno == EWOULDBLOCK) {
      return absl::UnavailableError(
          absl::StrCat(path,
                       " is in use by another process, or by this one already; try again "
                       "when that has ended"));
    }
    // The previous owner of the lock may have removed it.
    if (!HasName(fd, name)) continue;
    FileLock lock(TemporaryName(name), fd, locked);
    std::move(close_fd).Cancel();
    return lock;
  }
}

FileLock::~FileLock() {
  if (fd_ < 0) return;
  // The file is removed before it is unlocked. Otherwise another process could lock it in between,
  // and would then hold a lock on a file without a name.
  name_ = TemporaryName();
  close(fd_);
}

}  // namespace inlay
