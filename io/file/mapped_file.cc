#include "io/file/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/read_fully.h"

namespace inlay {

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  MappedFile mapped;
  INLAY_ASSIGN_OR_RETURN(mapped.file_, OpenFile::Open(path, O_RDONLY));
  const struct stat& info = mapped.file_.info();
  if (info.st_size == 0) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is an empty file"));
  }
  const size_t size = static_cast<size_t>(info.st_size);
  void* const data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, mapped.file_.fd(), 0);
  if (data == MAP_FAILED) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat(path, " cannot be mapped into memory (", size, " bytes)"));
  }
  mapped.data_ = static_cast<const uint8_t*>(data);
  mapped.size_ = size;
  mapped.range_ = AddGuardedRange(data, size, info.st_dev, info.st_ino);
  return mapped;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      range_(std::exchange(other.range_, nullptr)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  // The old mapping ends up in `other`, whose destructor releases it.
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(range_, other.range_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  if (range_ != nullptr) RemoveGuardedRange(range_);
  munmap(const_cast<uint8_t*>(data_), size_);
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
  const auto begin = static_cast<uint64_t>(range.data() - data_);
  const auto [got, error] = ReadFully(file_.fd(), {to, range.size()}, begin);
  if (got == range.size()) return;
  if (error != 0) range_->error.store(error);
  std::memset(to + got, 0, range.size() - got);
  range_->cut.store(true);
}

absl::Status MappedFile::CheckWhole(absl::string_view name) const {
  if (data_ == nullptr) return absl::OkStatus();
  const auto failed = [](int error, const std::string& what) {
    return absl::DataLossError(absl::ErrnoToStatus(error, what).message());
  };
  struct stat info;
  if (fstat(file_.fd(), &info) != 0)
    return failed(errno, absl::StrCat(name, " cannot be examined"));
  if (static_cast<size_t>(info.st_size) < size_) {
    return absl::DataLossError(absl::StrCat(name, " has become shorter than the ", size_,
                                            " bytes that it had when it was opened"));
  }
  const timespec& before = file_.info().st_mtim;
  if (info.st_mtim.tv_sec != before.tv_sec || info.st_mtim.tv_nsec != before.tv_nsec)
    return absl::DataLossError(absl::StrCat(name, " has changed since it was opened"));
  if (!range_->cut.load()) return absl::OkStatus();
  const std::string unread = absl::StrCat(name, " could not be read");
  const int error = range_->error.load();  // 0 for a page fault, which does not tell why
  return error == 0 ? absl::DataLossError(unread) : failed(error, unread);
}

}  // namespace inlay
