#include "io/store/snapshot_store_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/byte_stream.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/file/atomic_file.h"
#include "io/file/file_kind.h"
#include "io/file/read_fully.h"

namespace inlay {
namespace {

// A file's name is NAME=ROOT=LENGTH and this; names and roots have no '='.
constexpr absl::string_view kSnapshotSuffix = ".prefix";

struct Snapshot {
  std::string file;
  std::string name, root;
  size_t length = 0;
  uint64_t bytes = 0;
  absl::Time used;
};

constexpr absl::Duration kLockPause = absl::Milliseconds(50);
// A file with a temporary name that nobody has written to for as long was left by a killed writer.
constexpr absl::Duration kTemporaryAge = absl::Hours(1);

// False for a file that is no snapshot's.
bool ParseFileName(absl::string_view file, Snapshot& snapshot) {
  snapshot.file = std::string(file);
  if (!absl::ConsumeSuffix(&file, kSnapshotSuffix)) return false;
  const std::vector<absl::string_view> parts = absl::StrSplit(file, '=');
  if (parts.size() != 3 || !absl::SimpleAtoi(parts[2], &snapshot.length)) return false;
  snapshot.name = std::string(parts[0]);
  snapshot.root = std::string(parts[1]);
  return true;
}

// Whether an AtomicFile has the name until it is a snapshot's.
bool IsTemporary(absl::string_view file) {
  const size_t dot = file.rfind('.');
  Snapshot snapshot;
  return dot != absl::string_view::npos && IsTemporaryEnding(file.substr(dot)) &&
         ParseFileName(file.substr(0, dot), snapshot);
}

class FolderSnapshots final : public SnapshotStore {
 public:
  explicit FolderSnapshots(SnapshotStoreOptions options) : options_(std::move(options)) {}
  ~FolderSnapshots() override { Close(); }

  absl::Status Connect() override {
    Close();
    const char* folder = options_.folder.c_str();
    folder_ = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_ < 0) return Failed("open");
    if (access(folder, R_OK | X_OK) != 0) return Failed("read in");
    // A folder that cannot be written is told now rather than with the first snapshot.
    if (options_.writes && access(folder, W_OK) != 0) return Failed("write in");
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<size_t>> Lengths(absl::string_view root,
                                              absl::Duration limit) override {
    INLAY_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots, List(SteadyNow() + limit));
    std::vector<size_t> lengths;
    for (const Snapshot& snapshot : snapshots) {
      if (snapshot.root == root) lengths.push_back(snapshot.length);
    }
    return lengths;
  }

  absl::StatusOr<std::optional<Found>> Find(absl::string_view root,
                                            absl::Span<const std::string> names,
                                            absl::Duration limit) override {
    INLAY_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots, List(SteadyNow() + limit));
    std::map<absl::string_view, const Snapshot*> by_name;
    for (const Snapshot& snapshot : snapshots) {
      if (snapshot.root == root) by_name.emplace(snapshot.name, &snapshot);
    }
    for (size_t i = 0; i < names.size(); ++i) {
      const auto found = by_name.find(names[i]);
      if (found == by_name.end()) continue;
      found_ = *found->second;
      Use(found_);
      return Found{.index = i, .bytes = found_.bytes};
    }
    return std::nullopt;
  }

  absl::StatusOr<bool> Read(absl::string_view name, uint64_t offset, size_t size,
                            absl::Duration limit, std::string& value) override {
    const absl::Time deadline = SteadyNow() + limit;
    if (found_.name != name) {
      INLAY_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots, List(deadline));
      const auto found = FindName(snapshots, name);
      if (found == snapshots.end()) return false;
      found_ = *found;
    }
    INLAY_RETURN_IF_ERROR(CheckDeadline(deadline));
    const int file = openat(folder_, found_.file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return errno == ENOENT ? absl::StatusOr<bool>(false) : Failed("read in");
    const absl::Cleanup close_file = [file] { close(file); };
    const size_t before = value.size();
    value.resize(before + size);
    const auto [got, error] =
        ReadFully(file, {reinterpret_cast<uint8_t*>(value.data()) + before, size}, offset);
    if (got == size) return true;
    value.resize(before);
    errno = error;
    return error == 0 ? absl::StatusOr<bool>(false) : Failed("read in");
  }

  absl::StatusOr<bool> Write(absl::string_view root, absl::string_view name, size_t length,
                             absl::string_view value, const std::function<bool()>& stop) override {
    if (value.empty() || value.size() > options_.budget_bytes) return false;
    if (folder_ < 0) return NotConnected();
    INLAY_ASSIGN_OR_RETURN(const bool locked, Lock(stop));
    if (!locked) return false;
    const absl::Cleanup unlock = [this] { flock(folder_, LOCK_UN); };
    INLAY_RETURN_IF_ERROR(RemoveAbandoned());
    INLAY_ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, List(absl::InfiniteFuture()));
    if (const auto there = FindName(snapshots, name); there != snapshots.end()) {
      Use(*there);
      return true;
    }
    INLAY_RETURN_IF_ERROR(MakeRoom(std::move(snapshots), value.size(), options_.budget_bytes));
    const std::string path =
        absl::StrCat(options_.folder, "/", name, "=", root, "=", length, kSnapshotSuffix);
    for (bool again = false;; again = true) {
      absl::StatusOr<bool> written = WriteFile(path, value, stop);
      if (again || !absl::IsResourceExhausted(written.status())) return written;
      INLAY_RETURN_IF_ERROR(MakeRoomOnDisk(value.size(), written.status()));
    }
  }

  absl::Status Remove(absl::string_view name) override {
    INLAY_ASSIGN_OR_RETURN(const std::vector<Snapshot> snapshots, List(absl::InfiniteFuture()));
    const auto found = FindName(snapshots, name);
    return found == snapshots.end() ? absl::OkStatus() : Delete(*found);
  }

 private:
  void Close() {
    if (folder_ >= 0) close(folder_);
    folder_ = -1;
    found_ = {};
  }

  absl::Status NotConnected() const {
    return absl::FailedPreconditionError(
        absl::StrCat("the folder ", options_.folder, " was not opened"));
  }
  absl::Status Failed(absl::string_view what) const {
    return absl::UnavailableError(
        absl::StrCat("cannot ", what, " the folder ", options_.folder, ": ", std::strerror(errno)));
  }

  // False when `stop()` became true first. flock() could not be left to wait: a server that hangs
  // or is stopped while it has the lock would keep this one from its end.
  absl::StatusOr<bool> Lock(const std::function<bool()>& stop) const {
    for (absl::Duration waited; flock(folder_, LOCK_EX | LOCK_NB) != 0; waited += kLockPause) {
      if (errno != EWOULDBLOCK && errno != EINTR) return Failed("lock");
      if (stop()) return false;
      if (waited >= options_.lock_limit) {
        return absl::UnavailableError(absl::StrCat("another server has locked the folder ",
                                                   options_.folder, " for more than ",
                                                   absl::FormatDuration(options_.lock_limit)));
      }
      absl::SleepFor(kLockPause);
    }
    return true;
  }

  static std::vector<Snapshot>::const_iterator FindName(const std::vector<Snapshot>& snapshots,
                                                        absl::string_view name) {
    return std::find_if(snapshots.begin(), snapshots.end(),
                        [&](const Snapshot& snapshot) { return snapshot.name == name; });
  }

  // `deadline` is of SteadyNow().
  absl::Status CheckDeadline(absl::Time deadline) const {
    if (SteadyNow() < deadline) return absl::OkStatus();
    return absl::DeadlineExceededError(
        absl::StrCat("there was no time to read the folder ", options_.folder));
  }

  // Calls `act` with the name of each file whose name `is_ours`, and with what the file is.
  absl::Status ForEachFile(
      absl::Time deadline, const std::function<bool(const char* name)>& is_ours,
      const std::function<void(const char* name, const struct stat& file)>& act) const {
    if (folder_ < 0) return NotConnected();
    DIR* folder = opendir(options_.folder.c_str());
    if (folder == nullptr) return Failed("list");
    const absl::Cleanup close_folder = [folder] { closedir(folder); };
    while (true) {
      INLAY_RETURN_IF_ERROR(CheckDeadline(deadline));
      errno = 0;
      const dirent* entry = readdir(folder);
      if (entry == nullptr && errno != 0) return Failed("list");
      if (entry == nullptr) return absl::OkStatus();
      struct stat file = {};
      if (!is_ours(entry->d_name) ||
          fstatat(folder_, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(file.st_mode))
        continue;
      act(entry->d_name, file);
    }
  }

  absl::StatusOr<std::vector<Snapshot>> List(absl::Time deadline) const {
    std::vector<Snapshot> snapshots;
    Snapshot snapshot;
    INLAY_RETURN_IF_ERROR(ForEachFile(
        deadline, [&](const char* name) { return ParseFileName(name, snapshot); },
        [&](const char*, const struct stat& file) {
          snapshot.bytes = static_cast<uint64_t>(file.st_size);
          snapshot.used = absl::TimeFromTimespec(file.st_mtim);
          snapshots.push_back(snapshot);
        }));
    return snapshots;
  }

  // Removes files with temporary names, which killed writers leave where the file system knows no
  // files without a name. Call under the lock, so that nobody writes one; the age protects those of
  // machines that the lock does not reach.
  absl::Status RemoveAbandoned() const {
    const absl::Time young = absl::Now() - kTemporaryAge;
    return ForEachFile(absl::InfiniteFuture(), IsTemporary,
                       [&](const char* name, const struct stat& file) {
                         if (absl::TimeFromTimespec(file.st_mtim) < young)
                           unlinkat(folder_, name, 0);
                       });
  }

  // Without an error: what another process has removed meanwhile is not there to be used.
  void Use(const Snapshot& snapshot) const {
    utimensat(folder_, snapshot.file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  }

  absl::Status Delete(const Snapshot& snapshot) const {
    if (unlinkat(folder_, snapshot.file.c_str(), 0) == 0 || errno == ENOENT)
      return absl::OkStatus();
    return Failed("remove a file of");
  }

  // ResourceExhausted where the disk has no room for the file.
  static absl::StatusOr<bool> WriteFile(const std::string& path, absl::string_view value,
                                        const std::function<bool()>& stop) {
    INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, FileKind::kState));
    for (; !value.empty(); value.remove_prefix(std::min(kPieceBytes, value.size()))) {
      if (stop()) return false;
      const absl::string_view piece = value.substr(0, kPieceBytes);
      INLAY_RETURN_IF_ERROR(file.Write(AsBytes(piece)));
    }
    INLAY_RETURN_IF_ERROR(file.Commit());
    return true;
  }

  static uint64_t BytesOf(const std::vector<Snapshot>& snapshots) {
    uint64_t bytes = 0;
    for (const Snapshot& snapshot : snapshots) bytes += snapshot.bytes;
    return bytes;
  }

  // On a disk that is full before the budget is: removes as many bytes as are to be written. `full`
  // where there are fewer, as removing these would not help.
  absl::Status MakeRoomOnDisk(uint64_t bytes, const absl::Status& full) const {
    INLAY_ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, List(absl::InfiniteFuture()));
    const uint64_t held = BytesOf(snapshots);
    return held < bytes ? full : MakeRoom(std::move(snapshots), bytes, held);
  }

  // Removes what has expired, and the least recently used snapshots until so many bytes more keep
  // to the budget.
  absl::Status MakeRoom(std::vector<Snapshot> snapshots, uint64_t bytes, uint64_t budget) const {
    std::sort(snapshots.begin(), snapshots.end(),
              [](const Snapshot& a, const Snapshot& b) { return a.used < b.used; });
    uint64_t held = BytesOf(snapshots);
    const absl::Time expired = absl::Now() - options_.expiry;
    for (const Snapshot& snapshot : snapshots) {
      if (held + bytes <= budget && snapshot.used >= expired) break;
      INLAY_RETURN_IF_ERROR(Delete(snapshot));
      held -= snapshot.bytes;
    }
    return absl::OkStatus();
  }

  const SnapshotStoreOptions options_;
  int folder_ = -1;  // open while connected
  Snapshot found_;   // the last one, whose pieces are read next
};

}  // namespace

std::unique_ptr<SnapshotStore> OpenFolderSnapshots(SnapshotStoreOptions options) {
  return std::make_unique<FolderSnapshots>(std::move(options));
}

}  // namespace inlay
