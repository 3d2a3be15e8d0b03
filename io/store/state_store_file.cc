#include "io/store/state_store_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "io/file/atomic_file.h"
#include "io/file/open_file.h"
#include "io/file/read_fully.h"

namespace inlay {
namespace {

constexpr size_t kReadBytes = 64 * 1024;

// Keeps keys apart from the temporary files of other keys, whose names end otherwise.
constexpr absl::string_view kSuffix = ".state";

// A file that is in no store.
class SingleFileWriter final : public StateWriter {
 public:
  explicit SingleFileWriter(AtomicFile file) : file_(std::move(file)) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override { return file_.Write(bytes); }
  absl::Status Commit() override { return file_.Commit(); }

 private:
  AtomicFile file_;
};

class FileStateReader final : public StateReader {
 public:
  FileStateReader(std::string path, OpenFile file, StateTag tag)
      : path_(std::move(path)),
        file_(std::move(file)),
        remaining_(static_cast<uint64_t>(file_.info().st_size)),
        tag_(tag) {}

  absl::Status Read(absl::Span<uint8_t> into) override {
    if (into.size() > remaining_) {
      return absl::OutOfRangeError(
          absl::StrCat(path_, " has ", remaining_, " bytes left; ", into.size(), " are needed"));
    }
    while (!into.empty()) {
      if (at_ == end_ && into.size() >= buffer_.size()) {
        INLAY_ASSIGN_OR_RETURN(const size_t n, ReadSome(into));
        into.remove_prefix(n);
        remaining_ -= n;
        continue;
      }
      if (at_ == end_) {
        INLAY_ASSIGN_OR_RETURN(end_, ReadSome(absl::MakeSpan(buffer_)));
        at_ = 0;
      }
      const size_t n = std::min(into.size(), end_ - at_);
      std::memcpy(into.data(), buffer_.data() + at_, n);
      at_ += n;
      into.remove_prefix(n);
      remaining_ -= n;
    }
    return absl::OkStatus();
  }

  uint64_t remaining() const override { return remaining_; }
  StateTag tag() const override { return tag_; }

 private:
  // At least one byte, at most as many as there is room for.
  absl::StatusOr<size_t> ReadSome(absl::Span<uint8_t> into) {
    const auto [got, error] = ReadFully(file_.fd(), into);
    if (error != 0) return absl::ErrnoToStatus(error, absl::StrCat(path_, " cannot be read"));
    if (got > 0) return got;
    return absl::OutOfRangeError(absl::StrCat(
        path_, " became shorter while it was read: ", remaining_, " bytes are missing"));
  }

  std::string path_;
  OpenFile file_;
  uint64_t remaining_;
  StateTag tag_;
  // Serves small reads, of which a conversation has thousands; the unread bytes are [at_, end_).
  std::vector<uint8_t> buffer_ = std::vector<uint8_t>(kReadBytes);
  size_t at_ = 0;
  size_t end_ = 0;
};

// Without memory for a std::string of the key.
template <class Container>
void Erase(absl::string_view key, Container& container) {
  if (const auto found = container.find(key); found != container.end()) container.erase(found);
}

// When the file or folder was last changed.
absl::Time ChangeOf(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? absl::TimeFromTimespec(info.st_mtim)
                                        : absl::InfinitePast();
}

absl::StatusOr<std::unique_ptr<StateReader>> OpenStateFile(const std::string& path, StateTag tag) {
  INLAY_ASSIGN_OR_RETURN(OpenFile file, OpenFile::Open(path, O_RDONLY));
  return std::make_unique<FileStateReader>(path, std::move(file), tag);
}

}  // namespace

absl::StatusOr<std::unique_ptr<StateWriter>> WriteStateFile(const std::string& path, FileKind kind,
                                                            Replace replace) {
  INLAY_ASSIGN_OR_RETURN(AtomicFile file, AtomicFile::Create(path, kind, replace));
  return std::make_unique<SingleFileWriter>(std::move(file));
}

absl::StatusOr<std::unique_ptr<StateReader>> ReadStateFile(const std::string& path) {
  return OpenStateFile(path, kNoStateTag);
}

class FileStateWriter final : public StateWriter {
 public:
  FileStateWriter(FileStore& store, absl::string_view key, StateTag replaced, AtomicFile file)
      : store_(store), key_(key), replaced_(replaced), file_(std::move(file)) {}
  absl::Status Append(absl::Span<const uint8_t> bytes) override { return file_.Write(bytes); }

  absl::Status Commit() override {
    FileStore::Shard& shard = store_.ShardOf(key_);
    const std::lock_guard lock(shard.mutex);
    if (replaced_ != kAnyStateTag && replaced_ != store_.TagOf(shard, key_))
      return StateWasReplaced(key_);
    // Also where Commit fails, as the file may have its name then.
    shard.known.insert_or_assign(key_, FileStore::Known{++shard.last_tag, store_.clocks_.steady()});
    std::set<std::string, std::less<>> own = {key_};  // now, as later nothing may fail
    const absl::Status status = file_.Commit();
    // Not before the file has its name: a count that begins meanwhile reads the folder.
    const std::lock_guard counted_lock(store_.counted_mutex_);
    if (store_.counted_.has_value()) store_.counted_->merge(own);
    store_.UpdateKnownCount();
    return status;
  }

 private:
  FileStore& store_;
  std::string key_;
  StateTag replaced_;
  AtomicFile file_;
};

FileStore::FileStore(std::string folder, FileStoreClocks clocks)
    : folder_(std::move(folder)), clocks_(std::move(clocks)), last_change_(ChangeOf(folder_)) {}

std::string FileStore::Path(absl::string_view key) const {
  return absl::StrCat(folder_, "/", key, kSuffix);
}

FileStore::Shard& FileStore::ShardOf(absl::string_view key) {
  return shards_[Xxh64Of(key.data(), key.size(), 0) % shards_.size()];
}

StateTag FileStore::TagOf(const Shard& shard, absl::string_view key) const {
  struct stat info;
  // Another error does not say that there is none.
  if (stat(Path(key).c_str(), &info) != 0 && errno == ENOENT) return kNoStateTag;
  const auto it = shard.known.find(key);
  return it == shard.known.end() ? kFound : it->second.tag;
}

absl::StatusOr<std::unique_ptr<StateWriter>> FileStore::PutOver(absl::string_view key,
                                                                StateTag replaced) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  INLAY_ASSIGN_OR_RETURN(AtomicFile file,
                         AtomicFile::Create(Path(key), FileKind::kState, Replace::kSameKind));
  return std::make_unique<FileStateWriter>(*this, key, replaced, std::move(file));
}

absl::StatusOr<std::unique_ptr<StateReader>> FileStore::Get(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  return OpenStateFile(Path(key), TagOf(shard, key));
}

absl::Status FileStore::Delete(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  INLAY_RETURN_IF_ERROR(Unlink(shard, key));
  return SyncFolderOf(Path(key));
}

absl::Status FileStore::Unlink(Shard& shard, absl::string_view key) {
  const std::string path = Path(key);
  const bool deleted = unlink(path.c_str()) == 0;
  const int error = errno;
  if (deleted || error == ENOENT) {
    // A later state of this key has another tag, as tags only grow.
    Erase(key, shard.known);
    const std::lock_guard counted_lock(counted_mutex_);
    if (counted_.has_value()) Erase(key, *counted_);
    UpdateKnownCount();
  }
  if (deleted) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(path, " cannot be deleted"));
}

absl::Status FileStore::MarkUsed(absl::string_view key) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  const std::string path = Path(key);
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  const bool marked = utimensat(AT_FDCWD, path.c_str(), nullptr, 0) == 0;
  const int error = errno;
  if (!marked && error == ENOENT) return absl::OkStatus();
  shard.known.try_emplace(std::string(key)).first->second.used = clocks_.steady();
  if (marked) return absl::OkStatus();
  return absl::ErrnoToStatus(error, absl::StrCat(path, " cannot be marked as used"));
}

absl::StatusOr<std::vector<std::string>> FileStore::ListUnused(absl::string_view prefix,
                                                               absl::Duration time) {
  std::vector<std::pair<std::string, absl::Time>> found;  // and when their files were changed
  INLAY_RETURN_IF_ERROR(ForEach(prefix, [&](absl::string_view key, const struct stat& file) {
    found.emplace_back(key, absl::TimeFromTimespec(file.st_mtim));
    return true;
  }));
  SetFileTime(found, time);
  std::vector<std::string> keys;
  for (auto& [key, changed] : found) {
    Shard& shard = ShardOf(key);
    const std::lock_guard lock(shard.mutex);
    if (UnusedFor(shard, key, changed) >= time) keys.push_back(std::move(key));
  }
  return keys;
}

void FileStore::SetFileTime(absl::Span<const std::pair<std::string, absl::Time>> found,
                            absl::Duration time) {
  const absl::Time system = clocks_.system();
  absl::Time newest = absl::InfinitePast();
  // Times in the future tell of a clock that was wrong.
  const auto add = [&](absl::Time changed) {
    if (changed <= system) newest = std::max(newest, changed);
  };
  add(last_change_);
  for (const auto& [key, changed] : found) add(changed);
  const bool has_newest = newest > absl::InfinitePast();
  const absl::Time now = has_newest ? std::min(system, newest + time / 2) : system;
  const std::lock_guard lock(unused_mutex_);
  if (!file_time_.has_value()) file_time_ = now - clocks_.steady();
}

absl::Duration FileStore::UnusedFor(const Shard& shard, absl::string_view key, absl::Time changed) {
  const absl::Time now = clocks_.steady();
  if (const auto it = shard.known.find(key); it != shard.known.end()) return now - it->second.used;
  const std::lock_guard lock(unused_mutex_);
  return file_time_.has_value() ? now + *file_time_ - changed : absl::ZeroDuration();
}

absl::Status FileStore::DeleteUnused(absl::string_view key, absl::Duration time) {
  INLAY_RETURN_IF_ERROR(CheckStateKey(key));
  Shard& shard = ShardOf(key);
  const std::lock_guard lock(shard.mutex);
  struct stat file;
  if (stat(Path(key).c_str(), &file) != 0) return absl::OkStatus();
  if (UnusedFor(shard, key, absl::TimeFromTimespec(file.st_mtim)) < time) return absl::OkStatus();
  // The folder is not synced: a state that a loss of power brings back is unused all the same.
  const absl::Status deleted = Unlink(shard, key);
  return absl::IsNotFound(deleted) ? absl::OkStatus() : deleted;
}

absl::Status FileStore::ForEach(
    absl::string_view prefix,
    const std::function<bool(absl::string_view key, const struct stat& file)>& act) const {
  const auto failed = [this](int error) {
    return absl::ErrnoToStatus(error, absl::StrCat(folder_, " cannot be listed"));
  };
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(folder_.c_str()), closedir);
  if (folder == nullptr) return failed(errno);
  while (true) {
    errno = 0;
    const dirent* entry = readdir(folder.get());
    if (entry == nullptr && errno != 0) return failed(errno);
    if (entry == nullptr) return absl::OkStatus();
    absl::string_view key = entry->d_name;
    if (!absl::ConsumeSuffix(&key, kSuffix) || !absl::StartsWith(key, prefix)) continue;
    struct stat file;
    if (!CheckStateKey(key).ok() || stat(Path(key).c_str(), &file) != 0) continue;
    if (S_ISREG(file.st_mode) && !act(key, file)) return absl::OkStatus();
  }
}

absl::StatusOr<std::vector<std::string>> FileStore::Find(absl::string_view prefix,
                                                         size_t most) const {
  std::vector<std::string> keys;
  INLAY_RETURN_IF_ERROR(ForEach(prefix, [&](absl::string_view key, const struct stat&) {
    keys.emplace_back(key);
    return keys.size() <= most;
  }));
  return keys;
}

absl::StatusOr<std::vector<std::string>> FileStore::List(absl::string_view prefix) {
  const std::lock_guard lock(counted_mutex_);
  INLAY_ASSIGN_OR_RETURN(std::vector<std::string> keys, Find(prefix, kMostListed));
  if (keys.size() > kMostListed) return TooManyStates(prefix);
  std::sort(keys.begin(), keys.end());
  if (counted_.has_value()) {
    const auto begin = counted_->lower_bound(prefix);
    counted_->erase(begin, std::find_if_not(begin, counted_->end(), [&](const std::string& key) {
                      return absl::StartsWith(key, prefix);
                    }));
    counted_->insert(keys.begin(), keys.end());
    UpdateKnownCount();
  }
  return keys;
}

absl::StatusOr<size_t> FileStore::Count(absl::string_view prefix) {
  const std::lock_guard lock(counted_mutex_);
  if (!counted_.has_value()) {
    INLAY_ASSIGN_OR_RETURN(const std::vector<std::string> keys,
                           Find("", std::numeric_limits<size_t>::max()));
    counted_.emplace(keys.begin(), keys.end());
    UpdateKnownCount();
  }
  size_t count = 0;
  for (auto at = counted_->lower_bound(prefix);
       at != counted_->end() && absl::StartsWith(*at, prefix); ++at)
    ++count;
  return count;
}

std::optional<size_t> FileStore::KnownCount() {
  const size_t count = known_count_;
  return count == kNotCounted ? std::nullopt : std::optional(count);
}

}  // namespace inlay
