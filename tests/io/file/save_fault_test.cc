// A save that fails or dies at any system call: the old file is there whole, or the new one is.
//
// This program's own write, fsync, linkat, rename and so on take the place of the C library's,
// count the calls and make the chosen one fail.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "io/store/state_store_file.h"
#include "tests/temp_folder.h"

namespace {

enum class Fault { kNone, kError, kShortThenError, kDieBefore, kDieAfter };

struct Injection {
  Fault fault = Fault::kNone;
  int error = 0;
  int at = -1;  // the call, counted from 0
  int calls = 0;
  bool active = false;
  std::string made = {};  // a letter for each call
} injection;

bool nameless_files = true;  // whether the file system has O_TMPFILE

// Makes the call, unless it is the one that fails.
template <class Call>
auto Inject(char letter, Call call) {
  if (!injection.active) return call();
  injection.made += letter;
  if (injection.calls++ != injection.at) return call();
  switch (injection.fault) {
    case Fault::kError:
    case Fault::kShortThenError:
      errno = injection.error;
      return static_cast<decltype(call())>(-1);
    case Fault::kDieAfter:
      call();
      raise(SIGKILL);
      break;
    case Fault::kDieBefore:
      raise(SIGKILL);
      break;
    case Fault::kNone:
      break;
  }
  return call();
}

}  // namespace

extern "C" {

ssize_t write(int fd, const void* bytes, size_t size) {
  // A disk that becomes full takes a part first.
  if (injection.active && injection.fault == Fault::kShortThenError &&
      injection.calls == injection.at && size > 1) {
    return syscall(SYS_write, fd, bytes, size / 2);
  }
  return Inject('w', [&]() -> ssize_t { return syscall(SYS_write, fd, bytes, size); });
}
int fsync(int fd) {
  struct stat info;
  const bool folder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
  return Inject(folder ? 'F' : 's', [&] { return static_cast<int>(syscall(SYS_fsync, fd)); });
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const bool nameless = (flags & O_TMPFILE) == O_TMPFILE;
  const mode_t mode =
      (flags & O_CREAT) != 0 || nameless ? static_cast<mode_t>(va_arg(rest, int)) : 0;
  va_end(rest);
  if (nameless && !nameless_files) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) __THROW {
  return Inject(
      'l', [&] { return static_cast<int>(syscall(SYS_linkat, from_fd, from, to_fd, to, flags)); });
}
int rename(const char* from, const char* to) __THROW {
  return Inject('r', [&] {
    return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
  });
}

}  // extern "C"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr size_t kBytes = 300'000;

// A state that says itself whether it is whole: one byte, all along.
std::vector<uint8_t> StateOf(uint8_t version) {
  return std::vector<uint8_t>(kBytes + version, version);
}

// Twice: with O_TMPFILE, and on a file system that has no such files.
class SaveFaultTest : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    nameless_files = GetParam();
    ASSERT_TRUE(Save(1).ok());
  }
  void TearDown() override {
    injection = Injection();
    nameless_files = true;
  }

  absl::Status Save(uint8_t version) {
    FileStore store(folder_);
    auto writer = store.Put("key");
    if (!writer.ok()) return writer.status();
    const std::vector<uint8_t> state = StateOf(version);
    // Pieces of all sizes, as a conversation's sections are.
    size_t at = 0;
    for (size_t piece = 1; at < state.size(); piece = piece * 3 + 1) {
      const size_t n = std::min(piece, state.size() - at);
      const absl::Status status = (*writer)->Append(absl::MakeConstSpan(state).subspan(at, n));
      if (!status.ok()) return status;
      at += n;
    }
    return (*writer)->Commit();
  }

  // Which version is in the store; -1 for something that nobody saved.
  int Saved() {
    FileStore store(folder_);
    auto reader = store.Get("key");
    if (!reader.ok()) return -1;
    std::vector<uint8_t> state((*reader)->remaining());
    if (!(*reader)->Read(absl::MakeSpan(state)).ok() || state.empty()) return -1;
    return state == StateOf(state[0]) ? state[0] : -1;
  }

  // Calls of an undisturbed save.
  int Calls() {
    injection = {.active = true};
    EXPECT_TRUE(Save(1).ok());
    const int calls = injection.calls;
    injection = Injection();
    return calls;
  }

  size_t NumFiles() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_),
                                             std::filesystem::directory_iterator()));
  }

  // Runs `act` in a child process; its wait status.
  static int InChild(const std::function<void()>& act) {
    const pid_t pid = fork();
    if (pid == 0) {
      act();
      _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
};

INSTANTIATE_TEST_SUITE_P(FileSystems, SaveFaultTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Named"; });

// What a loss of power takes is what was not synced: the bytes must be down before the name points
// at them, and the name before the save has succeeded.
TEST_P(SaveFaultTest, SyncsTheBytesThenTheName) {
  injection = {.active = true};
  ASSERT_TRUE(Save(2).ok());
  const std::string made = injection.made;
  injection = Injection();
  // Where the file has no name: the name is taken, so it gets another one first.
  EXPECT_THAT(made, MatchesRegex(GetParam() ? "w+sllrF" : "w+srF"));
  std::filesystem::remove(folder_ + "/key.state");
  injection = {.active = true};
  ASSERT_TRUE(Save(2).ok());
  const std::string first = injection.made;
  injection = Injection();
  EXPECT_THAT(first, MatchesRegex(GetParam() ? "w+slF" : "w+srF"));
}

TEST_P(SaveFaultTest, EveryCallThatCanFail) {
  const int calls = Calls();
  ASSERT_GT(calls, 5);  // some writes, fsync, rename, fsync of the folder
  int survived = 0;
  for (const int error : {ENOSPC, EIO, EDQUOT, EROFS}) {
    for (const Fault fault : {Fault::kError, Fault::kShortThenError}) {
      for (int at = 0; at < calls; ++at) {
        injection = {.fault = fault, .error = error, .at = at, .active = true};
        const absl::Status status = Save(2);
        const bool reached = injection.calls > at;
        injection = Injection();
        ASSERT_TRUE(reached) << at;
        // The last call syncs the folder, which only some file systems can.
        if (at == calls - 1) {
          ASSERT_EQ(status.ok(), error == EROFS) << error;
        }
        if (status.ok()) {
          // The name is given and the folder cannot be synced at all, or nothing has failed.
          ASSERT_EQ(Saved(), 2) << at;
        } else {
          // The sync of the folder is the last call: then the name is given, but may be lost.
          ASSERT_EQ(Saved(), at == calls - 1 ? 2 : 1) << at;
          ASSERT_THAT(std::string(status.message()), HasSubstr("key.state"));
        }
        ASSERT_EQ(NumFiles(), 1u) << "a temporary file is left";
        ASSERT_TRUE(Save(1).ok());
        ++survived;
      }
    }
  }
  std::printf("%d faults injected, %d survived\n", 8 * calls, survived);
}

TEST_P(SaveFaultTest, InterruptedCallsAreMadeAgain) {
  const int calls = Calls();
  int done = 0;
  for (int at = 0; at < calls; ++at) {
    injection = {.fault = Fault::kError, .error = EINTR, .at = at, .active = true};
    const absl::Status status = Save(2);
    injection = Injection();
    ASSERT_EQ(Saved(), status.ok() ? 2 : 1) << at;
    done += status.ok();
    ASSERT_TRUE(Save(1).ok());
  }
  EXPECT_GE(done, calls - 5);  // all but fsync, linkat and rename, which no signal interrupts
}

TEST_P(SaveFaultTest, KilledAtEveryCall) {
  const int calls = Calls();
  int old_ones = 0, new_ones = 0, left = 0;
  for (const Fault fault : {Fault::kDieBefore, Fault::kDieAfter}) {
    for (int at = 0; at < calls; ++at) {
      ASSERT_TRUE(Save(1).ok());
      const int status = InChild([&] {
        injection = {.fault = fault, .at = at, .active = true};
        (void)Save(2);
      });
      ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << at;
      const int saved = Saved();
      ASSERT_TRUE(saved == 1 || saved == 2) << at;
      ++(saved == 1 ? old_ones : new_ones);
      for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
        if (entry.path().filename() == "key.state") continue;
        std::filesystem::remove(entry.path());
        ++left;
      }
    }
  }
  // Without a name nothing is left, except between the two calls that replace the older file.
  if (GetParam()) {
    EXPECT_EQ(left, 2);
  }
  EXPECT_GT(old_ones, 0);
  EXPECT_GT(new_ones, 0);
  std::printf("killed %d times: %d old ones, %d new ones, no other\n", 2 * calls, old_ones,
              new_ones);
}

TEST_P(SaveFaultTest, KilledAtAnyMoment) {
  constexpr int kRounds = 150;
  for (int round = 0; round < kRounds; ++round) {
    const pid_t pid = fork();
    if (pid == 0) {
      for (uint8_t version = 2;; version = static_cast<uint8_t>(2 + version % 100)) {
        if (!Save(version).ok()) _exit(1);
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(round * 53));
    kill(pid, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_GT(Saved(), 0) << round;
  }
}

TEST_P(SaveFaultTest, FilesThatMayNotGrow) {
  for (const rlim_t limit : {rlim_t{0}, rlim_t{1000}, rlim_t{100'000}, rlim_t{kBytes}}) {
    const int status = InChild([&] {
      signal(SIGXFSZ, SIG_IGN);
      const rlimit most{limit, limit};
      setrlimit(RLIMIT_FSIZE, &most);
      const absl::Status saved = Save(2);
      _exit(!saved.ok() && Saved() == 1 ? 42 : 1);
    });
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << limit;
    EXPECT_EQ(Saved(), 1);
    EXPECT_EQ(NumFiles(), 1u);
  }
}

TEST_P(SaveFaultTest, ReadOnlyFolder) {
  ASSERT_EQ(chmod((folder_ + "/key.state").c_str(), 0644), 0);  // for nobody too
  ASSERT_EQ(chmod(folder_.c_str(), 0555), 0);
  const int status = InChild([&] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && seteuid(kNobody) != 0) _exit(2);  // root may write anywhere
    const absl::Status saved = Save(2);
    _exit(absl::IsPermissionDenied(saved) && Saved() == 1 ? 42 : 1);
  });
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 42) << WEXITSTATUS(status);
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  EXPECT_EQ(Saved(), 1);
}

TEST_P(SaveFaultTest, NamesThatAreNoFiles) {
  for (const char* path : {"/dev/full", "/dev/null", "/proc/self/status", "/no/such/folder/x"}) {
    auto writer = WriteStateFile(path, FileKind::kState);
    EXPECT_FALSE(writer.ok()) << path;
    EXPECT_THAT(std::string(writer.status().message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace inlay
