// A save that fails or dies at any system call: the old file is there whole, or the new one is.
//
// This program's own write, fsync, rename and so on take the place of the C library's, count the
// calls and make the chosen one fail.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
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

#include "io/state_store.h"

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

class SaveFaultTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "inlay_save_fault_XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    ASSERT_TRUE(Save(1).ok());
  }
  void TearDown() override {
    injection = Injection();
    std::filesystem::remove_all(folder_);
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

  std::string folder_;
};

// What a loss of power takes is what was not synced: the bytes must be down before the name points
// at them, and the name before the save has succeeded.
TEST_F(SaveFaultTest, SyncsTheBytesThenTheName) {
  injection = {.active = true};
  ASSERT_TRUE(Save(2).ok());
  const std::string made = injection.made;
  injection = Injection();
  EXPECT_THAT(made, MatchesRegex("w+srF"));
}

TEST_F(SaveFaultTest, EveryCallThatCanFail) {
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
        if (status.ok()) {
          // The name is given and only the folder's sync, or nothing, has failed.
          ASSERT_EQ(Saved(), 2) << at;
        } else {
          ASSERT_EQ(Saved(), 1) << at;
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

TEST_F(SaveFaultTest, InterruptedCallsAreMadeAgain) {
  const int calls = Calls();
  int done = 0;
  for (int at = 0; at < calls; ++at) {
    injection = {.fault = Fault::kError, .error = EINTR, .at = at, .active = true};
    const absl::Status status = Save(2);
    injection = Injection();
    ASSERT_EQ(Saved(), status.ok() ? 2 : 1);
    done += status.ok();
    ASSERT_TRUE(Save(1).ok());
  }
  EXPECT_GE(done, calls - 3);  // all but fsync and rename, which no signal interrupts
}

TEST_F(SaveFaultTest, KilledAtEveryCall) {
  const int calls = Calls();
  int old_ones = 0, new_ones = 0;
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
    }
  }
  EXPECT_GT(old_ones, 0);
  EXPECT_GT(new_ones, 0);
  std::printf("killed %d times: %d old ones, %d new ones, no other\n", 2 * calls, old_ones,
              new_ones);
}

TEST_F(SaveFaultTest, KilledAtAnyMoment) {
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

TEST_F(SaveFaultTest, FilesThatMayNotGrow) {
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

TEST_F(SaveFaultTest, ReadOnlyFolder) {
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

TEST_F(SaveFaultTest, NamesThatAreNoFiles) {
  for (const char* path : {"/dev/full", "/dev/null", "/proc/self/status", "/no/such/folder/x"}) {
    auto writer = WriteStateFile(path);
    EXPECT_FALSE(writer.ok()) << path;
    EXPECT_THAT(std::string(writer.status().message()), HasSubstr(path));
  }
}

}  // namespace
}  // namespace inlay
