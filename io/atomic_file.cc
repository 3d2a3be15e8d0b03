#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/status_macros.h"

namespace inlay {
namespace {

// Pieces below this size are collected, so that a header written field by field costs few calls.
constexpr size_t kBufferBytes = 64 * 1024;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

absl::StatusOr<AtomicFile> AtomicFile::Create(const std::string& path, bool executable) {
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " cannot be written: it exists and is not a regular file"));
  }
  // In the same folder, since a rename does not cross file systems. Not by mkstemp, whose file is
  // private: the umask, which gives an ordinary new file its rights, cannot be read without
  // changing it for all threads.
  std::random_device random;
  while (true) {
    std::string temporary = absl::StrCat(path, ".", absl::Hex(random(), absl::kZeroPad8));
    const int fd =
        open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, executable ? 0777 : 0666);
    if (fd >= 0) return AtomicFile(path, std::move(temporary), fd);
    if (errno != EEXIST && errno != EINTR) {
      return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be created"));
    }
  }
}

AtomicFile::AtomicFile(std::string path, std::string temporary, int fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

AtomicFile::AtomicFile(AtomicFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)),
      size_(other.size_),
      buffer_(std::move(other.buffer_)) {}

AtomicFile& AtomicFile::operator=(AtomicFile&& other) noexcept {
  // The old temporary file ends up in `other`, whose destructor removes it.
  std::swap(path_, other.path_);
  std::swap(temporary_, other.temporary_);
  std::swap(fd_, other.fd_);
  std::swap(size_, other.size_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

AtomicFile::~AtomicFile() {
  if (fd_ < 0) return;
  close(fd_);
  unlink(temporary_.c_str());
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
  return WriteAll({reinterpret_cast<const uint8_t*>(pending.data()), pending.size()});
}

absl::Status AtomicFile::WriteAll(absl::Span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be written"));
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

absl::Status AtomicFile::Commit() {
  INLAY_RETURN_IF_ERROR(Flush());
  if (fsync(fd_) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be synced to the disk"));
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path_, " cannot be given its name"));
  }
  close(std::exchange(fd_, -1));
  // The name itself lives in the folder. The file is complete and in place by now, so a file
  // system that cannot sync folders is no reason to report a failure.
  const int folder = open(FolderOf(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    fsync(folder);
    close(folder);
  }
  return absl::OkStatus();
}

}  // namespace inlay
