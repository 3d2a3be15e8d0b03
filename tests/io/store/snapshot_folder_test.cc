// Snapshots in a folder: what is found, what expires, the budget, and what else may be there.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/store/open_snapshot_store.h"
#include "tests/io/store/snapshot_store_contract.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

static bool readdir_fails = false;

extern "C" dirent* readdir(DIR* folder) {
  static const auto next = reinterpret_cast<decltype(&readdir)>(dlsym(RTLD_NEXT, "readdir"));
  if (!readdir_fails) return next(folder);
  errno = EIO;
  return nullptr;
}

static bool folders_are_read_only = false;

extern "C" int access(const char* path, int mode) noexcept {
  static const auto next = reinterpret_cast<decltype(&access)>(dlsym(RTLD_NEXT, "access"));
  if (!folders_are_read_only || (mode & W_OK) == 0) return next(path, mode);
  errno = EROFS;
  return -1;
}

// Of a disk that has room for so many bytes of snapshots in this folder; "": there is none.
static std::string full_disk_folder;
static uint64_t full_disk_bytes = 0;

static uint64_t BytesWith(int new_file, uint64_t more) {
  struct stat info = {};
  uint64_t sum = fstat(new_file, &info) == 0 ? static_cast<uint64_t>(info.st_size) + more : more;
  for (const auto& entry : std::filesystem::directory_iterator(full_disk_folder)) {
    // The new file has no name yet, or another one.
    if (entry.path().extension() == ".prefix") sum += entry.file_size();
  }
  return sum;
}

// Whether the disk has no room for a new file where it has none for a byte.
static bool new_files_need_room = false;

extern "C" int open(const char* path, int flags, ...) {
  const bool makes_file = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  if (new_files_need_room && makes_file && BytesWith(-1, 1) > full_disk_bytes) {
    errno = ENOSPC;
    return -1;
  }
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = va_arg(arguments, mode_t);  // anything where there is none
  va_end(arguments);
  return openat(AT_FDCWD, path, flags, mode);
}

extern "C" ssize_t write(int fd, const void* bytes, size_t size) {
  static const auto next = reinterpret_cast<decltype(&write)>(dlsym(RTLD_NEXT, "write"));
  if (full_disk_folder.empty() || BytesWith(fd, size) <= full_disk_bytes)
    return next(fd, bytes, size);
  errno = ENOSPC;
  return -1;
}

namespace inlay {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class SnapshotFolderTest : public ::testing::Test {
 protected:
  std::unique_ptr<SnapshotStore> Open(uint64_t budget = 1 << 30,
                                      absl::Duration expiry = absl::Hours(1)) const {
    // However slow the disk is: other writers hold the lock meanwhile.
    auto store = Must(OpenSnapshotStore({.folder = folder_.path(),
                                         .budget_bytes = budget,
                                         .expiry = expiry,
                                         .lock_limit = absl::Minutes(5)}));
    EXPECT_TRUE(store->Connect().ok());
    return store;
  }

  uint64_t BytesThere() const {
    uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::error_code gone;
      const uint64_t size = entry.file_size(gone);
      if (!gone) sum += size;
    }
    return sum;
  }

  const TempFolder folder_;
};

TEST_F(SnapshotFolderTest, AnotherServerFindsWhatOneHasWritten) {
  ExpectOneFindsWhatTheOtherWrote(*Open(), *Open());
  EXPECT_EQ(BytesThere(), 11u);
}

TEST_F(SnapshotFolderTest, FilesAreTheOwnersAlone) {
  EXPECT_TRUE(WriteSnapshot(*Open(), "a", "x"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << entry.path();
  }
}

// The first one stays: it is the same value.
TEST_F(SnapshotFolderTest, WrittenTwiceItIsThereOnce) {
  const auto one = Open(), other = Open();
  EXPECT_TRUE(WriteSnapshot(*one, "a", std::string(1000, 'a')));
  EXPECT_TRUE(WriteSnapshot(*other, "a", std::string(2000, 'b')));
  EXPECT_EQ(BytesThere(), 1000u);
}

TEST_F(SnapshotFolderTest, TheLeastRecentlyUsedGoesFirst) {
  // File systems keep times in steps of some milliseconds.
  ExpectTheLeastRecentlyUsedGoesFirst(*Open(10'000), *Open(10'000), absl::Milliseconds(20));
}

TEST_F(SnapshotFolderTest, TheBudgetHoldsWithSeveralWriters) {
  static constexpr uint64_t kBudget = 5'000'000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([this, t] {
      const auto store = Open(kBudget);
      for (int i = 0; i < 12; ++i) {
        const std::string value(static_cast<size_t>(700'000 + 300'000 * t), 'x');
        EXPECT_TRUE(WriteSnapshot(*store, absl::StrCat(t, ".", i), value));
      }
    });
  }
  std::thread watcher([this] {
    for (int i = 0; i < 100; ++i) EXPECT_LE(BytesThere(), kBudget);
  });
  for (std::thread& writer : writers) writer.join();
  watcher.join();
  EXPECT_GT(BytesThere(), kBudget / 2);
  EXPECT_LE(BytesThere(), kBudget);
}

TEST_F(SnapshotFolderTest, ExpireWhenTheyAreNotUsed) {
  const auto store = Open(10'000, absl::Hours(1));
  EXPECT_TRUE(WriteSnapshot(*store, "a", "x"));
  EXPECT_TRUE(WriteSnapshot(*store, "b", "x"));
  const auto two_hours_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path()))
    std::filesystem::last_write_time(entry, two_hours_ago);
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u) << "it is there until room is made, and used now";
  EXPECT_TRUE(WriteSnapshot(*store, "c", "x"));
  EXPECT_EQ(FindSnapshot(*store, {"b"}), std::nullopt);
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
}

TEST_F(SnapshotFolderTest, AWriterThatStopsLeavesNothing) {
  const auto store = Open();
  int pieces = 0;
  const auto stops = [&pieces] { return ++pieces > 2; };
  EXPECT_FALSE(Must(store->Write("root", "a", 7, std::string(3'500'000, 'a'), stops)));
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  EXPECT_EQ(BytesThere(), 0u);
}

TEST_F(SnapshotFolderTest, AServerThatKeepsTheLockHoldsUpNoOther) {
  const int other = open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  int asked = 0;
  const auto stops = [&asked] { return ++asked > 2; };
  EXPECT_FALSE(Must(Open()->Write("root", "a", 7, "x", stops)));
  const auto store =
      Must(OpenSnapshotStore({.folder = folder_.path(), .lock_limit = absl::Milliseconds(100)}));
  ASSERT_TRUE(store->Connect().ok());
  const absl::Status locked = store->Write("root", "a", 7, "x", NeverStop).status();
  EXPECT_EQ(locked.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(locked.message(), HasSubstr("locked the folder " + folder_.path()));
  close(other);
  ASSERT_TRUE(store->Connect().ok());
  EXPECT_TRUE(WriteSnapshot(*store, "a", "x"));
}

TEST_F(SnapshotFolderTest, OtherFilesStayAndAreNoSnapshots) {
  const std::vector<std::string> others = {"notes.txt", "a=root=7", "a=root=x.prefix",
                                           "root=7.prefix", "=.prefix"};
  for (const std::string& name : others) std::ofstream(folder_.Path(name)) << "mine";
  std::filesystem::create_directory(folder_.Path("a=root=7.prefix"));
  const auto store = Open(10);
  EXPECT_THAT(Must(store->Lengths("root", kSnapshotLimit)), IsEmpty());
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  EXPECT_TRUE(WriteSnapshot(*store, "b", "0123456789"));
  EXPECT_TRUE(WriteSnapshot(*store, "c", "0123456789"));
  EXPECT_EQ(FindSnapshot(*store, {"b"}), std::nullopt);
  for (const std::string& name : others)
    EXPECT_TRUE(std::filesystem::exists(folder_.Path(name))) << name;
}

// However large the folder is: what waits for an answer waits no longer than it was told.
TEST_F(SnapshotFolderTest, ATimeLimitEndsTheListingOfAFolder) {
  constexpr absl::Duration kTooShort = absl::Nanoseconds(1);
  const auto store = Open();
  EXPECT_TRUE(WriteSnapshot(*store, "a", "x"));
  EXPECT_EQ(store->Lengths("root", kTooShort).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(store->Find("root", {"a"}, kTooShort).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::string value;
  EXPECT_EQ(store->Read("a", 0, 1, kTooShort, value).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(value, "");
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
}

// Half of a list would make the budget that of half of the snapshots.
TEST_F(SnapshotFolderTest, AFolderThatCannotBeReadToItsEndIsAnError) {
  const auto store = Open();
  EXPECT_TRUE(WriteSnapshot(*store, "a", "x"));
  readdir_fails = true;
  const auto lengths = store->Lengths("root", kSnapshotLimit);
  const auto written = store->Write("root", "b", 7, "x", NeverStop);
  readdir_fails = false;
  EXPECT_THAT(lengths.status().message(), HasSubstr("cannot list the folder " + folder_.path()));
  EXPECT_THAT(written.status().message(), HasSubstr("cannot list the folder " + folder_.path()));
  EXPECT_EQ(FindSnapshot(*store, {"a"}), 0u);
}

// What was written before, or came with a file system that nobody may write, is of use.
TEST_F(SnapshotFolderTest, AFolderThatMustNotBeWrittenIsRead) {
  EXPECT_TRUE(WriteSnapshot(*Open(), "a", "value"));
  folders_are_read_only = true;
  const absl::Cleanup writable = [] { folders_are_read_only = false; };
  const auto writes = Must(OpenSnapshotStore({.folder = folder_.path()}));
  EXPECT_THAT(writes->Connect().message(), HasSubstr("cannot write in the folder " +
                                                     folder_.path() + ": Read-only file system"));
  const auto reads = Must(OpenSnapshotStore({.writes = false, .folder = folder_.path()}));
  ASSERT_TRUE(reads->Connect().ok());
  EXPECT_EQ(FindSnapshot(*reads, {"a"}), 0u);
  std::string value;
  EXPECT_TRUE(Must(reads->Read("a", 0, 5, kSnapshotLimit, value)));
  EXPECT_EQ(value, "value");
}

TEST_F(SnapshotFolderTest, OnAFullDiskTheLeastRecentlyUsedMakeRoom) {
  const auto store = Open();
  // File systems keep times in steps of some milliseconds.
  const auto later = [] { absl::SleepFor(absl::Milliseconds(20)); };
  for (const char* name : {"a", "b"}) {
    EXPECT_TRUE(WriteSnapshot(*store, name, SnapshotValue(3000, *name)));
    later();
  }
  full_disk_folder = folder_.path();
  full_disk_bytes = 7000;
  const absl::Cleanup empty_disk = [] { full_disk_folder.clear(); };
  EXPECT_TRUE(WriteSnapshot(*store, "c", SnapshotValue(3000, 'c')));
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  EXPECT_EQ(FindSnapshot(*store, {"b"}), 0u);
  later();
  EXPECT_EQ(FindSnapshot(*store, {"c"}), 0u);
  // Nothing is removed for what would find no room in its place either, and what else is there can
  // still be read.
  EXPECT_THAT(store->Write("root", "d", 7, SnapshotValue(6500, 'd'), NeverStop).status().message(),
              HasSubstr("No space left"));
  // The disk has become smaller: others have filled it meanwhile.
  full_disk_bytes = 1000;
  EXPECT_FALSE(store->Write("root", "d", 7, SnapshotValue(3000, 'd'), NeverStop).ok());
  EXPECT_EQ(FindSnapshot(*store, {"b"}), std::nullopt) << "it did not help, and no more is removed";
  EXPECT_EQ(FindSnapshot(*store, {"c"}), 0u);
}

// Before a byte is written, where a new file needs room for its name or itself.
TEST_F(SnapshotFolderTest, OnADiskWithoutRoomForAFileTheLeastRecentlyUsedMakeRoom) {
  const auto store = Open();
  EXPECT_TRUE(WriteSnapshot(*store, "a", SnapshotValue(3000, 'a')));
  full_disk_folder = folder_.path();
  full_disk_bytes = 3000;
  new_files_need_room = true;
  const absl::Cleanup empty_disk = [] {
    full_disk_folder.clear();
    new_files_need_room = false;
  };
  EXPECT_TRUE(WriteSnapshot(*store, "b", SnapshotValue(2000, 'b')));
  EXPECT_EQ(FindSnapshot(*store, {"a"}), std::nullopt);
  EXPECT_EQ(FindSnapshot(*store, {"b"}), 0u);
}

// Where the file system knows no files without a name.
TEST_F(SnapshotFolderTest, WhatKilledWritersHaveLeftIsRemovedAfterAnHour) {
  const std::string old = "a=root=7.prefix.0123abcd", young = "a=root=7.prefix.0123abce";
  const std::vector<std::string> others = {"a=root.prefix.0123abcd", "a=root=7.prefix.0123abcg",
                                           "a=root=7.prefix.0123abc", "a=root=7.0123abcd"};
  for (const std::string& name : others) std::ofstream(folder_.Path(name)) << "mine";
  for (const std::string& name : {old, young}) std::ofstream(folder_.Path(name)) << "half";
  const auto hours_ago = std::filesystem::file_time_type::clock::now() - std::chrono::hours(2);
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    if (entry.path().filename() != young) std::filesystem::last_write_time(entry, hours_ago);
  }
  EXPECT_TRUE(WriteSnapshot(*Open(), "b", "x"));
  EXPECT_FALSE(std::filesystem::exists(folder_.Path(old)));
  EXPECT_TRUE(std::filesystem::exists(folder_.Path(young)));
  for (const std::string& name : others)
    EXPECT_TRUE(std::filesystem::exists(folder_.Path(name))) << name;
}

TEST_F(SnapshotFolderTest, AFolderThatGoesIsAnError) {
  const std::string path = folder_.Path("inner");
  const auto store = Must(OpenSnapshotStore({.folder = path}));
  EXPECT_EQ(store->Lengths("root", kSnapshotLimit).status().code(),
            absl::StatusCode::kFailedPrecondition)
      << "it is not connected";
  EXPECT_THAT(store->Connect().message(), HasSubstr("cannot open the folder " + path));
  std::filesystem::create_directory(path);
  ASSERT_TRUE(store->Connect().ok());
  EXPECT_TRUE(WriteSnapshot(*store, "a", "x"));
  EXPECT_EQ(store->Lengths("root", absl::ZeroDuration()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::filesystem::remove_all(path);
  EXPECT_EQ(store->Lengths("root", kSnapshotLimit).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store->Write("root", "b", 7, "x", NeverStop).ok());
}

}  // namespace
}  // namespace inlay
