// Locks on files that are replaced while they are locked.
#include "io/file/file_lock.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "io/file/atomic_file.h"
#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class FileLockTest : public FolderTest<> {
 protected:
  // What another process is told that asks for the lock: 0 for nothing.
  int CodeElsewhere(const std::string& path) {
    const int status = InChild([&] {
      const int code = static_cast<int>(FileLock::Acquire(path).status().code());
      _exit(code);  // after the lock, if there was one, is gone
    });
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  static constexpr int kUnavailable = static_cast<int>(absl::StatusCode::kUnavailable);
};

TEST_F(FileLockTest, KeepsOthersAwayUntilItEnds) {
  {
    absl::StatusOr<FileLock> lock = FileLock::Acquire(Path("x"));
    ASSERT_TRUE(lock.ok()) << lock.status();
    EXPECT_EQ(CodeElsewhere(Path("x")), kUnavailable);
    const absl::Status second = FileLock::Acquire(Path("x")).status();
    EXPECT_THAT(std::string(second.message()), AllOf(HasSubstr(Path("x")), HasSubstr("in use")));
    EXPECT_EQ(CodeElsewhere(Path("y")), 0);
    const FileLock moved = *std::move(lock);
    lock = absl::CancelledError();
    EXPECT_EQ(CodeElsewhere(Path("x")), kUnavailable);
    // Those who are refused leave the lock in place.
    EXPECT_EQ(CodeElsewhere(Path("x")), kUnavailable);
  }
  EXPECT_EQ(NumFiles(), 0u);
  EXPECT_EQ(CodeElsewhere(Path("x")), 0);
}

TEST_F(FileLockTest, StaysWhenTheFileIsReplaced) {
  Make("x", "old");
  ASSERT_EQ(symlink("x", Path("link").c_str()), 0);
  const absl::StatusOr<FileLock> lock = FileLock::Acquire(Path("x"));
  ASSERT_TRUE(lock.ok()) << lock.status();
  absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("x"));
  ASSERT_TRUE(file.ok() && file->Commit().ok());
  EXPECT_EQ(CodeElsewhere(Path("x")), kUnavailable);
  EXPECT_EQ(CodeElsewhere(Path("link")), kUnavailable);
}

TEST_F(FileLockTest, OfAKilledProcessBlocksNobody) {
  const int status = InChild([&] {
    const absl::StatusOr<FileLock> lock = FileLock::Acquire(Path("x"));
    raise(SIGKILL);
  });
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(NumFiles(), 1u);
  EXPECT_EQ(CodeElsewhere(Path("x")), 0);
  // What another user's killed process left.
  Make("y.lock", "");
  ASSERT_EQ(chmod(Path("y.lock").c_str(), 0444), 0);
  EXPECT_EQ(CodeElsewhere(Path("y")), 0);
}

TEST_F(FileLockTest, LeavesFilesOfThatNameAlone) {
  Make("x.lock", "somebody's own");
  EXPECT_THAT(std::string(FileLock::Acquire(Path("x")).status().message()),
              HasSubstr("x.lock exists and is no lock file"));
  EXPECT_EQ(Contents(Path("x.lock")), "somebody's own");
  EXPECT_THAT(std::string(FileLock::Acquire(Path("no/x")).status().message()),
              HasSubstr("no/x cannot be locked"));
}

// Each reads a number, adds one and replaces the file, as often as it gets the lock.
TEST_F(FileLockTest, NothingIsLostBetweenProcesses) {
  constexpr int kProcesses = 4, kTimes = 50;
  Make("x", "0");
  std::vector<pid_t> children(kProcesses);
  for (pid_t& child : children) {
    child = fork();
    if (child != 0) continue;
    for (int i = 0; i < kTimes;) {
      const absl::StatusOr<FileLock> lock = FileLock::Acquire(Path("x"));
      if (absl::IsUnavailable(lock.status())) {
        std::this_thread::yield();
        continue;
      }
      if (!lock.ok()) _exit(1);
      const std::string next = std::to_string(std::atoi(Contents(Path("x")).c_str()) + 1);
      absl::StatusOr<AtomicFile> file = AtomicFile::Create(Path("x"));
      if (!file.ok() || !file->Write(AsBytes(next)).ok() || !file->Commit().ok()) _exit(2);
      ++i;
    }
    _exit(0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(Contents(Path("x")), std::to_string(kProcesses * kTimes));
  EXPECT_EQ(NumFiles(), 1u);
}

}  // namespace
}  // namespace inlay
