// A file that appears under its name only when it is complete and synced to the disk.
#ifndef INLAY_IO_FILE_ATOMIC_FILE_H_
#define INLAY_IO_FILE_ATOMIC_FILE_H_

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "io/file/file_kind.h"
#include "io/file/temporary_name.h"

namespace inlay {

// The name of the file that writing to `path` creates or replaces: symbolic links are followed,
// dangling ones too.
absl::StatusOr<std::string> FollowLinks(const std::string& path);

// Puts the names in a file's folder on the disk, as they are now. A file system that knows no such
// operation, or a folder that must not be read, is no error.
absl::Status SyncFolderOf(const std::string& path);

// Whether an AtomicFile may have appended this to its file's name for the temporary name beside it:
// a dot and eight hexadecimal digits.
bool IsTemporaryEnding(absl::string_view ending);

// Without Commit, the new file disappears with the object, and an existing file of that name is
// unchanged. Where the file system supports O_TMPFILE, the new file has no name until Commit, so
// that nothing is left even when the process is killed; elsewhere it has a TemporaryName in the
// same folder.
class AtomicFile {
 public:
  // Begins a file that Commit names `path`, or as the target of a symbolic link at `path`. Fails
  // where CheckReplace(path, kind, replace) does. An existing file's permissions are kept. A new
  // file is accessible to its owner only (0600) when it holds a conversation (kSession, kChat,
  // kState); others have the permissions that the umask leaves, including execution for kProgram.
  static absl::StatusOr<AtomicFile> Create(const std::string& path,
                                           FileKind kind = FileKind::kOther,
                                           Replace replace = Replace::kSameKind);

  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();

  // Appends; after an error the object can only be destroyed. Small pieces are buffered.
  absl::Status Write(absl::Span<const uint8_t> bytes);

  // Flushes to the disk and gives the file its name; call once, last. Checks again what Create
  // checked: AlreadyExists under Replace::kNothing when a file of this name has appeared since.
  // After an error nothing has changed, unless it is that the folder cannot be synced: then the
  // file has its name, but a loss of power may take that back.
  absl::Status Commit();

  // As given to Create.
  const std::string& path() const { return path_; }

  // Bytes written so far.
  uint64_t size() const { return size_; }

 private:
  AtomicFile(const std::string& path, std::string target, FileKind kind, Replace replace)
      : path_(path), target_(std::move(target)), kind_(kind), replace_(replace) {}
  absl::Status OpenNew(mode_t mode);
  absl::Status CopyOwnerAndMode(const struct stat& old);
  absl::Status GiveName();
  absl::Status Flush();
  absl::Status WriteAll(absl::Span<const uint8_t> bytes);

  std::string path_;
  std::string target_;  // path_ with symbolic links followed
  FileKind kind_;
  Replace replace_;
  TemporaryName temporary_;  // empty while the file has no name
  int fd_ = -1;              // -1 when there is no new file (any more)
  uint64_t size_ = 0;
  std::string buffer_;
};

}  // namespace inlay

#endif  // INLAY_IO_FILE_ATOMIC_FILE_H_
