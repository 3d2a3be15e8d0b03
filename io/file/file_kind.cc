#include "io/file/file_kind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/file/mapping_guard.h"
#include "io/file/read_fully.h"

namespace inlay {
namespace {

constexpr size_t kLongestMagic = 16;  // enough for each of them

// Of executables: ELF, and Mach-O for one or several architectures.
constexpr std::array<absl::string_view, 3> kProgramMagics = {
    "\x7f"
    "ELF",
    "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe"};

absl::string_view NameOf(FileKind kind) {
  switch (kind) {
    case FileKind::kEmpty:
      return "an empty file";
    case FileKind::kModel:
      return "a model file";
    case FileKind::kProgram:
      return "a program";
    case FileKind::kSession:
      return "a saved conversation";
    case FileKind::kChat:
      return "a saved chat";
    case FileKind::kState:
      return "a saved state";
    case FileKind::kOther:
      return "a file of another kind";
  }
  return "";
}

bool IsSameKind(FileKind old, FileKind written) {
  if (old == FileKind::kEmpty || old == written) return true;
  return written == FileKind::kState &&
         (old == FileKind::kSession || old == FileKind::kChat || old == FileKind::kOther);
}

}  // namespace

absl::StatusOr<FileKind> KindOfFile(const std::string& path) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be opened"));
  const auto close_fd = absl::MakeCleanup([fd] { close(fd); });
  INLAY_ASSIGN_OR_RETURN(const std::string first, ReadAt(fd, 0, kLongestMagic, path));
  if (first.empty()) return FileKind::kEmpty;
  if (absl::StartsWith(first, kModelMagic)) return FileKind::kModel;
  if (absl::StartsWith(first, kSessionMagic)) return FileKind::kSession;
  if (absl::StartsWith(first, kChatMagic)) return FileKind::kChat;
  for (const absl::string_view magic : kProgramMagics) {
    if (absl::StartsWith(first, magic)) return FileKind::kProgram;
  }
  const off_t end = std::max<off_t>(0, lseek(fd, 0, SEEK_END) - off_t{kLongestMagic});
  INLAY_ASSIGN_OR_RETURN(const std::string last,
                         ReadAt(fd, static_cast<uint64_t>(end), kLongestMagic, path));
  return absl::EndsWith(last, kBundleMagic) ? FileKind::kProgram : FileKind::kOther;
}

absl::Status CheckReplace(const std::string& path, FileKind kind, Replace replace) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::ErrnoToStatus(errno, absl::StrCat(path, " cannot be written"));
  }
  if (!S_ISREG(info.st_mode)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " cannot be written: it exists and is not a regular file"));
  }
  if (IsMapped(info.st_dev, info.st_ino)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in use by this command and is never written over"));
  }
  const absl::StatusOr<FileKind> old = KindOfFile(path);
  if (absl::IsNotFound(old.status())) return absl::OkStatus();  // removed meanwhile
  INLAY_RETURN_IF_ERROR(old.status());
  if (!IsSameKind(*old, kind)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is ", NameOf(*old), ", not ",
                                                   NameOf(kind), ", and is never written over"));
  }
  if (*old == FileKind::kEmpty || replace == Replace::kSameKind) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat(path, " exists already"));
}

}  // namespace inlay
