#include "io/file/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "base/status_macros.h"
#include "io/file/write_fully.h"

namespace inlay {
namespace {

// Pieces below this size are collected, so that a header written field by field costs few calls.
constexpr size_t kBufferBytes = 64 * 1024;

constexpr int kMostLinks = 40;  // the limit of Linux

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// The permissions of a new file before the umask is applied.
mode_t NewMode(FileKind kind) {
  switch (kind) {
    case FileKind::kProgram:
      return 0777;
    case FileKind::kSession:
    case FileKind::kChat:
    case FileKind::kState:
      return 0600;
    default:
      return 0666;
  }
}

std::string DescriptorPath(int fd) { return absl::StrCat("/proc/self/fd/", fd); }

// A name in the same folder, since a rename does not cross file systems.
TemporaryName NameBeside(const std::string& path) {
  std::random_device random;
  return TemporaryName(absl::StrCat(path, ".", absl::Hex(random(), absl::kZeroPad8)));
}

}  // namespace

bool IsTemporaryEnding(absl::string_view ending) {
  return ending.size() == 9 && ending[0] == '.' &&
         ending.find_first_not_of("0123456789abcdef", 1) == absl::string_view::npos;
}

absl::StatusOr<std::string> FollowLinks(const std::string& path) {
  std::string target = path;
  for (int links = 0; links <= kMostLinks; ++links) {
    struct stat info;
    if (lstat(target.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return target;
    char next[PATH_MAX];
    const ssize_t n = readlink(target.c_str(), next, sizeof(next));
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be followed"));
    const std::string link(next, static_cast<size_t>(n));
    target = link[0] == '/' ? link : absl::StrCat(FolderOf(target), "/", link);
  }
  return absl::ErrnoToStatus(ELOOP, absl::StrCat(path, " cannot be followed"));
}

absl::Status SyncFolderOf(const std::string& path) {
  const int fd = open(FolderOf(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // One may write to a folder that one may not read.
  if (fd < 0 && errno == EACCES) return absl::OkStatus();
  const auto failed = [&path](int error) {
    return absl::ErrnoToStatus(error,
                               absl::StrCat(path, ": its folder cannot be synced to the disk"));
  };
  if (fd < 0) return failed(errno);
  const int error = fsync(fd) == 0 ? 0 : errno;
  close(fd);
  // Of the others, EINVAL and its kin say that there is no such operation.
  if (error != EIO && error != ENOSPC && error != EDQUOT) return absl::OkStatus();
  return failed(error);
}

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, FileKind kind,
                                              Replace replace) {
  INLAY_RETURN_IF_ERROR(CheckReplace(path, kind, replace));
  INLAY_ASSIGN_OR_RETURN(std::string target, FollowLinks(path));
  AtomicFile file(path, std::move(target), kind, replace);
  struct stat old;
  const bool exists = stat(file.target_.c_str(), &old) == 0;
  // Until the old file's permissions are copied, nobody else has access to the new one.
  INLAY_RETURN_IF_ERROR(file.OpenNew(exists ? 0600 : NewMode(kind)));
  if (exists) INLAY_RETURN_IF_ERROR(file.CopyOwnerAndMode(old));
  return file;
}

absl::Status AtomicFile::OpenNew(mode_t mode) {
#ifdef O_TMPFILE
  fd_ = open(FolderOf(target_).c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, mode);
  // Commit names it through /proc, which may be missing.
  if (fd_ >= 0 && access(DescriptorPath(fd_).c_str(), F_OK) == 0) return absl::OkStatus();
  if (fd_ >= 0) close(std::exchange(fd_, -1));
#endif
  while (true) {
    temporary_ = NameBeside(target_);
    fd_ = open(temporary_.path().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd_ >= 0) return absl::OkStatus();
    const int error = errno;
    temporary_.Forget();
    if (error != EEXIST && error != EINTR) {
      return absl::ErrnoToStatus(error, absl::StrCat(path_, " cannot be created"));
    }
  }
}

absl::Status AtomicFile::CopyOwnerAndMode(const struct stat& old) {
  mode_t mode = old.st_mode & 0777;
  if (kind_ == FileKind::kProgram) mode |= (mode & 0444) >> 2;
  struct stat created;
  if (fstat(fd_, &created) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be examined"));
  }
  // Only root can keep another owner, so failing to is no error. If the group cannot be kept, the
  // new file's group must not get the permissions of the old one.
  if (old.st_uid != created.st_uid) (void)!fchown(fd_, old.st_uid, static_cast<gid_t>(-1));
  if (old.st_gid != created.st_gid && fchown(fd_, static_cast<uid_t>(-1), old.st_gid) != 0) {
    mode &= ~mode_t{0070};
  }
  if (fchmod(fd_, mode) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be given its permissions"));
}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      kind_(other.kind_),
      replace_(other.replace_),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  // This object's unfinished file moves to `other`, whose destructor removes it.
  std::swap(path_, other.path_);
  std::swap(target_, other.target_);
  std::swap(kind_, other.kind_);
  std::swap(replace_, other.replace_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ >= 0) close(fd_);
}

absl::Status AtomicFile::Write(absl::Span<const uint8_t> bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() <= kBufferBytes) {
    buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return absl::OkStatus();
  }
  INLAY_RETURN_IF_ERROR(Flush());
  return WriteAll(bytes);
}

absl::Status AtomicFile::Flush() {
  const std::string pending = std::exchange(buffer_, {});
  return WriteAll(AsBytes(pending));
}

absl::Status AtomicFile::WriteAll(absl::Span<const uint8_t> bytes) {
  const int error = WriteFully(fd_, bytes).error;
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(path_, " cannot be written"));
}

absl::Status AtomicFile::Commit() {
  INLAY_RETURN_IF_ERROR(Flush());
  if (fsync(fd_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be synced to the disk"));
  }
  INLAY_RETURN_IF_ERROR(GiveName());
  close(std::exchange(fd_, -1));
  // The name itself is stored in the folder.
  return SyncFolderOf(target_);
}

absl::Status AtomicFile::GiveName() {
  const auto failed = [&] {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be given its name"));
  };
  const auto link_to = [&](const std::string& name) {
    return linkat(AT_FDCWD, DescriptorPath(fd_).c_str(), AT_FDCWD, name.c_str(),
                  AT_SYMLINK_FOLLOW) == 0;
  };
  const bool nameless = temporary_.empty();
  if (nameless) {
    // The usual case, where no file has the name: nothing is replaced, and no temporary name is
    // needed.
    if (link_to(target_)) return absl::OkStatus();
    if (errno != EEXIST) return failed();
  }
  INLAY_RETURN_IF_ERROR(CheckReplace(path_, kind_, replace_));
  // linkat cannot replace a file, so the new one gets a temporary name and is then renamed.
  while (nameless && temporary_.empty()) {
    temporary_ = NameBeside(target_);
    if (link_to(temporary_.path())) break;
    const int error = errno;
    temporary_.Forget();
    errno = error;
    if (error != EEXIST) return failed();
  }
  if (rename(temporary_.path().c_str(), target_.c_str()) != 0) return failed();
  temporary_.Forget();
  return absl::OkStatus();
}

}  // namespace inlay
