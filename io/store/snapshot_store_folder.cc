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
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "io/file/atomic_file.h"
#include "io/file/file_kind.h"

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
    for (size_t done = 0; done < size;) {
      const ssize_t read =
          pread(file, value.data() + before + done, size - done, static_cast<off_t>(offset + done));
      if (read < 0 && errno == EINTR) continue;
      if (read <= 0) {
        value.resize(before);
        return read == 0 ? absl::StatusOr<bool>(false) : Failed("read in");
      }
      done += static_cast<size_t>(read);
    }
    return true;
  }

  absl::StatusOr<bool> Write(absl::string_view root, absl::string_view name, size_t length,
                             absl::string_view value, const std::function<bool()>& stop) override {
    if (value.empty() || value.size() > options_.budget_bytes) return false;
    if (folder_ < 0) return NotConnected();
    INLAY_ASSIGN_OR_RETURN(const bool locked, Lock(stop));
    if (!locked) return false;
    const absl::Cleanup unlock = [this] { flock(folder_, LOCK_UN); };
    INLAY_ASSIGN_OR_RETURN(std::vector<Snapshot> snapshots, List(absl::InfiniteFuture()));
    if (const auto there = FindName(snapshots, name); there != snapshots.end()) {
      Use(*there);
      return true;
    }
    INLAY_RETURN_IF_ERROR(MakeRoom(std::move(snapshots), value.size(), options_.budget_bytes));
    const std::string path =
        absl::StrCat(options_.folder, "/", name, "=", root, "=", length, kSnapshotSuffix);
    for (bool again = false;; again = true) {
      INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, FileKind::kState));
      absl::StatusOr<bool> written = Fill(file, value, stop);
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

  absl::StatusOr<std::vector<Snapshot>> List(absl::Time deadline) const {
    if (folder_ < 0) return NotConnected();
    DIR* folder = opendir(options_.folder.c_str());
    if (folder == nullptr) return Failed("list");
    const absl::Cleanup close_folder = [folder] { closedir(folder); };
    std::vector<Snapshot> snapshots;
    Snapshot snapshot;
    while (true) {
      INLAY_RETURN_IF_ERROR(CheckDeadline(deadline));
      errno = 0;
      const dirent* entry = readdir(folder);
      if (entry == nullptr && errno != 0) return Failed("list");
      if (entry == nullptr) return snapshots;
      struct stat file = {};
      if (!ParseFileName(entry->d_name, snapshot) ||
          fstatat(folder_, entry->d_name, &file, AT_SYMLINK_NOFOLLOW) != 0 ||
          !S_ISREG(file.st_mode))
        continue;
      snapshot.bytes = static_cast<uint64_t>(file.st_size);
      snapshot.used = absl::TimeFromTimespec(file.st_mtim);
      snapshots.push_back(snapshot);
    }
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

  // Writes the value and names the file. ResourceExhausted where the disk has no room for it.
  static absl::StatusOr<bool> Fill(AtomicFile& file, absl::string_view value,
                                   const std::function<bool()>& stop) {
    for (; !value.empty(); value.remove_prefix(std::min(kPieceBytes, value.size()))) {
      if (stop()) return false;
      const absl::string_view piece = value.substr(0, kPieceBytes);
      INLAY_RETURN_IF_ERROR(
          file.Write({reinterpret_cast<const uint8_t*>(piece.data()), piece.size()}));
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
