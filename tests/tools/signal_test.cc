// Commands that write files, ended by a signal at any call: nothing half done is left.
//
// This program's own open, write, fsync, linkat and rename take the place of the C library's, count
// the calls that make the file and send the signal before the chosen one.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/temp_folder.h"
#include "tests/tools/program.h"
#include "tools/cli.h"

namespace {

bool nameless_files = true;  // whether the file system has O_TMPFILE
int signal_to_send = 0;
int signal_at = -1;    // the call, counted from 0
int* calls = nullptr;  // shared with the parent; null: nothing is counted

void Count() {
  if (calls == nullptr || (*calls)++ != signal_at) return;
  raise(signal_to_send);
  // The first Ctrl-C while an answer is given only stops the answer.
  raise(signal_to_send);
}

}  // namespace

extern "C" {

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
ssize_t write(int fd, const void* bytes, size_t size) {
  if (fd > STDERR_FILENO) Count();
  return syscall(SYS_write, fd, bytes, size);
}
int fsync(int fd) {
  Count();
  return static_cast<int>(syscall(SYS_fsync, fd));
}
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) __THROW {
  Count();
  return static_cast<int>(syscall(SYS_linkat, from_fd, from, to_fd, to, flags));
}
int rename(const char* from, const char* to) __THROW {
  Count();
  return static_cast<int>(syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0));
}

}  // extern "C"

namespace inlay {
namespace {

namespace fs = std::filesystem;

// Twice: with O_TMPFILE, and on a file system that has no such files.
class Signal : public testing::TestWithParam<bool> {
 protected:
  Signal()
      : folder_(temp_.path()),
        output_(temp_.Path("output")),
        calls_(static_cast<int*>(mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Signal() override { munmap(calls_, sizeof(int)); }

  // In a child of this process, which has its system calls.
  ProgramResult Run(std::vector<std::string> arguments, int signal, int at) {
    arguments.insert(arguments.begin(), "inlay");
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    *calls_ = 0;
    return RunProgram({}, {.act = [&] {
                        nameless_files = GetParam();
                        signal_to_send = signal;
                        signal_at = at;
                        calls = calls_;
                        return RunCommandLine(static_cast<int>(arguments.size()), argv.data());
                      }});
  }

  // `write` makes the output, and `rewrite` replaces it by one that may be different.
  void Sweep(const std::vector<std::string>& write, const std::vector<std::string>& rewrite) {
    ASSERT_EQ(Run(write, 0, -1).status, 0);
    const std::string old = ReadFile(output_);
    ASSERT_EQ(Run(rewrite, 0, -1).status, 0);
    const std::string renewed = ReadFile(output_);
    const int count = *calls_;
    ASSERT_GE(count, 3);  // a write, fsync, rename, and fsync of the folder
    // The first bytes, some in between, and everything from the last bytes on.
    std::set<int> points = {0, count / 2};
    for (int at = std::max(0, count - 6); at < count; ++at) points.insert(at);
    int i = 0;
    for (const int at : points) {
      const int signal = std::vector<int>{SIGINT, SIGTERM, SIGHUP}[static_cast<size_t>(i++) % 3];
      SCOPED_TRACE(write[0] + ": signal " + std::to_string(signal) + " before call " +
                   std::to_string(at) + " of " + std::to_string(count));
      WriteFile(output_, old);
      EXPECT_EQ(Run(rewrite, signal, at).status, 128 + signal);
      const std::string now = ReadFile(output_);
      EXPECT_TRUE(now == old || now == renewed);
      EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1)
          << "something is left";
    }
    std::printf("%s: %d signals\n", write[0].c_str(), static_cast<int>(points.size()) + 1);
    // Where there was none before, there is none.
    fs::remove(output_);
    EXPECT_EQ(Run(write, SIGTERM, 0).status, 128 + SIGTERM);
    EXPECT_TRUE(fs::is_empty(folder_));
  }

  const TempFolder temp_;
  const std::string folder_;
  const std::string output_;
  int* calls_;
};

INSTANTIATE_TEST_SUITE_P(FileSystems, Signal, testing::Bool(),
                         [](const auto& info) { return info.param ? "Nameless" : "Named"; });

TEST_P(Signal, Quantize) {
  Sweep({"quantize", kDemoModel, output_, "Q8_0"},
        {"quantize", kDemoModel, output_, "Q4_0", "--force"});
}

TEST_P(Signal, Synth) {
  Sweep({"synth", "bard", "-o", output_}, {"synth", "bard", "-o", output_, "-s", "2", "--force"});
}

TEST_P(Signal, Pack) {
  Sweep({"pack", kDemoModel, output_}, {"pack", kDemoModel, output_, "--force"});
}

TEST_P(Signal, Bundle) {
  Sweep({"bundle", kDemoModel, "-o", output_}, {"bundle", kDemoModel, "-o", output_, "--force"});
}

TEST_P(Signal, Session) {
  const std::vector<std::string> generate = {"generate", "-m", kDemoModel,  "-p",   "A", "-n", "5",
                                             "--temp",   "0",  "--session", output_};
  Sweep(generate, generate);
}

}  // namespace
}  // namespace inlay
