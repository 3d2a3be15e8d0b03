#include "io/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // O_NONBLOCK: opening a pipe that nobody writes to must fail below, not wait.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened"));
  auto close_fd = absl::MakeCleanup([fd] { close(fd); });

  struct stat info;
  if (fstat(fd, &info) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be examined"));
  }
  if (S_ISDIR(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is a directory, not a file"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is not a regular file"));
  }
  if (info.st_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is an empty file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path, " cannot be mapped into memory (", size, " bytes)"));
  }
  std::move(close_fd).Cancel();
  return MappedFile(fd, static_cast<const uint8_t*>(data), size, info.st_mtim,
                    AddGuardedRange(data, size, info.st_dev, info.st_ino));
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      modified_(other.modified_),
      range_(std::exchange(other.range_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  // The old mapping ends up in `other`, whose destructor releases it.
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(modified_, other.modified_);
  std::swap(range_, other.range_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  RemoveGuardedRange(range_);
  munmap(const_cast<uint8_t*>(data_), size_);
  close(fd_);
}

void MappedFile::Forget(absl::Span<const uint8_t> range) const {
  assert(range.data() >= data_ && range.data() + range.size() <= data_ + size_);
  // Only the whole pages within the range. This is a hint, so failures do not matter.
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(range.data()) + page - 1) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(range.data() + range.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

void MappedFile::Read(absl::Span<const uint8_t> range, uint8_t* to) const {
  assert(range.data() >= data_ && range.data() + range.size() <= data_ + size_);
  const auto begin = static_cast<off_t>(range.data() - data_);
  for (size_t done = 0; done < range.size();) {
    const ssize_t n = pread(fd_, to + done, range.size() - done, begin + static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      if (n < 0) range_->error.store(errno);
      std::memset(to + done, 0, range.size() - done);
      range_->cut.store(true);
      return;
    }
    done += static_cast<size_t>(n);
  }
}

absl::Status MappedFile::CheckWhole(absl::string_view name) const {
  if (data_ == nullptr) return absl::OkStatus();
  const auto failed = [](int error, const std::string& what) {
    return absl::DataLossError(absl::ErrnoToStatus(error, what).message());
  };
  struct stat info;
  if (fstat(fd_, &info) != 0) return failed(errno, absl::StrCat(name, " cannot be examined"));
  if (static_cast<size_t>(info.st_size) < size_) {
    return absl::DataLossError(absl::StrCat(name, " has become shorter than the ", size_,
                                            " bytes that it had when it was opened"));
  }
  if (info.st_mtim.tv_sec != modified_.tv_sec || info.st_mtim.tv_nsec != modified_.tv_nsec)
    return absl::DataLossError(absl::StrCat(name, " has changed since it was opened"));
  if (!range_->cut.load()) return absl::OkStatus();
  const std::string unread = absl::StrCat(name, " could not be read");
  const int error = range_->error.load();  // 0 for a page fault, which does not tell why
  return error == 0 ? absl::DataLossError(unread) : failed(error, unread);
}

}  // namespace inlay
