// --sandbox: what it refuses is refused, and a model still runs.
#include "tools/sandbox.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/model/cgroup_limits.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::HasSubstr;

constexpr int kHolds = 42;

// Runs `act` in a child; its exit status is what that returned, and -1 where it ended otherwise.
int InChild(const std::function<int()>& act) {
  const pid_t pid = fork();
  if (pid == 0) _exit(act());
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Runs `act` in a child that has entered the sandbox; whether it returned true there.
bool InSandbox(const std::function<bool()>& act, const std::vector<std::string>& readable = {}) {
  const int status = InChild([&] {
    if (!EnterSandbox(readable).ok()) return 1;
    return act() ? kHolds : 2;
  });
  EXPECT_NE(status, 1) << "no sandbox here";
  return status == kHolds;
}

// Whether the call fails with EPERM. That is the filter's refusal: Landlock's is EACCES, and comes
// after.
bool IsFiltered(long result) { return result < 0 && errno == EPERM; }

class Sandbox : public testing::Test {
 protected:
  Sandbox() : path_(ScratchPath("file")), other_(ScratchPath("other")) { MakeFiles(); }
  ~Sandbox() override {
    unlink(path_.c_str());
    unlink(other_.c_str());
  }

  // The filter refuses the call, which succeeds without a sandbox: else the test would take for
  // refused what fails anyway. A kernel that has no such call is told of.
  void ExpectRefused(const std::string& what, const std::function<long()>& call,
                     const std::vector<std::string>& readable = {}) {
    const int error = InChild([&] { return call() < 0 ? errno : 0; });
    if (error == ENOSYS || error == EAFNOSUPPORT || error == EOPNOTSUPP) {
      std::printf("%s is not had here, sandbox or not: errno %d\n", what.c_str(), error);
    } else {
      EXPECT_EQ(error, 0) << what << " without a sandbox";
    }
    MakeFiles();  // what the call has changed
    EXPECT_TRUE(InSandbox([&] { return IsFiltered(call()); }, readable)) << what;
  }

  // A file at path_ and none at other_.
  void MakeFiles() {
    remove(other_.c_str());
    WriteFile(path_, "contents");
  }

  std::string path_, other_;
};

TEST_F(Sandbox, NoNetwork) {
  for (const int domain : {AF_INET, AF_INET6, AF_UNIX, AF_NETLINK}) {
    const int type = domain == AF_NETLINK ? SOCK_RAW : SOCK_STREAM;
    ExpectRefused(absl::StrCat("socket ", domain), [=] { return socket(domain, type, 0); });
  }
  ExpectRefused("socketpair", [] {
    int pair[2];
    return socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
  });
  // Sockets that were open before.
  const int connected = socket(AF_INET, SOCK_DGRAM, 0);
  const int open_socket = socket(AF_INET, SOCK_DGRAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ExpectRefused("connect", [&] {
    return connect(connected, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  });
  ExpectRefused("sendto", [&] {
    return sendto(open_socket, "x", 1, 0, reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address));
  });
  close(connected);
  close(open_socket);
}

TEST_F(Sandbox, NoFileIsMadeOrChanged) {
  const char* const path = path_.c_str();
  const char* const other = other_.c_str();
  for (const int flags : {O_WRONLY, O_RDWR, O_WRONLY | O_CREAT, O_RDONLY | O_CREAT,
                          O_RDONLY | O_TRUNC, O_WRONLY | O_APPEND}) {
    // Not what Landlock refuses: the file may be read.
    ExpectRefused(absl::StrCat("open ", flags), [=] { return open(path, flags, 0600); }, {path_});
    ExpectRefused(absl::StrCat("openat ", flags),
                  [=] { return syscall(SYS_openat, AT_FDCWD, path, flags, 0600); }, {path_});
  }
  ExpectRefused("create", [=] { return open(other, O_WRONLY | O_CREAT, 0600); });
  ExpectRefused("O_TMPFILE",
                [] { return open(testing::TempDir().c_str(), O_TMPFILE | O_RDWR, 0600); });
  ExpectRefused("rename", [=] { return rename(path, other); });
  ExpectRefused("unlink", [=] { return unlink(path); });
  ExpectRefused("link", [=] { return link(path, other); });
  ExpectRefused("symlink", [=] { return symlink(path, other); });
  ExpectRefused("mkdir", [=] { return mkdir(other, 0700); });
  ExpectRefused("mkfifo", [=] { return mkfifo(other, 0600); });
  ExpectRefused("truncate", [=] { return truncate(path, 0); });
  ExpectRefused("chmod", [=] { return chmod(path, 0777); });
  ExpectRefused("memfd", [] { return syscall(SYS_memfd_create, "x", 0); });
  const int fd = open(path, O_RDWR);
  ExpectRefused("ftruncate", [=] { return ftruncate(fd, 0); });
  close(fd);
  EXPECT_EQ(ReadFile(path_), "contents");
  EXPECT_EQ(access(other, F_OK), -1);
}

TEST_F(Sandbox, NoProgramAndNoOtherProcess) {
  // The child of the child ends with it, as if the call had succeeded there, too.
  ExpectRefused("fork", [] { return static_cast<long>(fork()); });
  ExpectRefused("vfork", [] { return syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0); });
  ExpectRefused("exec", [] { return execl("/bin/true", "true", nullptr); });
  ExpectRefused("kill", [] { return kill(getppid(), 0); });
  ExpectRefused("tgkill", [] { return syscall(SYS_tgkill, getppid(), getppid(), 0); });
  ExpectRefused("ptrace", [] { return ptrace(PTRACE_TRACEME, 0, nullptr, nullptr); });
  // Where the kernel refuses it to everybody, which the test would take for the filter's refusal.
  const auto set_up_ring = [] {
    io_uring_params parameters = {};
    return syscall(SYS_io_uring_setup, 1, &parameters);
  };
  if (InChild([&] { return IsFiltered(set_up_ring()) ? kHolds : 0; }) == kHolds) {
    std::printf("io_uring is not had here, sandbox or not\n");
  } else {
    ExpectRefused("io_uring", set_up_ring);
  }
  ExpectRefused("setrlimit", [] {
    const rlimit none{0, 0};
    return setrlimit(RLIMIT_CORE, &none);
  });
  // Somebody to be signalled when something can be read; somebody else's cores.
  ExpectRefused("F_SETOWN", [] { return fcntl(0, F_SETOWN, getppid()); });
  ExpectRefused("affinity", [] {
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    return sched_setaffinity(getppid(), sizeof(cores), &cores);
  });
  // Any command that is not named, as TIOCSTI is not, which needs a terminal to be tried.
  ExpectRefused("ioctl", [] { return ioctl(0, FIOCLEX); });
  ExpectRefused("prctl", [] { return prctl(PR_SET_DUMPABLE, 0); });
}

// By the requests of both generations: glibc 2.42 and later make the newer ones alone.
TEST_F(Sandbox, TerminalsAreKnownAndConfigured) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  ASSERT_GE(terminal, 0);
  ASSERT_EQ(grantpt(terminal), 0);
  ASSERT_EQ(unlockpt(terminal), 0);
  const int fd = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  ASSERT_GE(fd, 0);
  EXPECT_TRUE(InSandbox([=] { return isatty(fd) == 1; }));
  // TCGETS2; TCSETS2, TCSETSW2, TCSETSF2
  const auto configures = [fd](unsigned long get, std::initializer_list<unsigned long> sets) {
    unsigned char settings[64];  // more than the kernel's struct has
    if (ioctl(fd, get, settings) != 0) return false;
    return std::all_of(sets.begin(), sets.end(),
                       [&](unsigned long set) { return ioctl(fd, set, settings) == 0; });
  };
  EXPECT_TRUE(InSandbox([=] { return configures(TCGETS, {TCSETS, TCSETSW, TCSETSF}); }));
  EXPECT_TRUE(InSandbox([=] {
    return configures(0x802C542A, {0x402C542B, 0x402C542C, 0x402C542D});
  }));
  EXPECT_TRUE(InSandbox([=] { return IsFiltered(ioctl(fd, TIOCSTI, "x")); }));
  close(fd);
  close(terminal);
}

// Else a container's program would plan with the memory of the whole machine.
TEST_F(Sandbox, SeesTheLimitsOfControlGroups) {
  const size_t outside = CgroupMemory();
  EXPECT_TRUE(InSandbox([&] {
    const bool limited = CgroupMemory() < std::numeric_limits<size_t>::max();
    return std::ifstream("/proc/self/cgroup").good() &&
           limited == (outside < std::numeric_limits<size_t>::max());
  }));
}

TEST_F(Sandbox, ReadsTheModelAndNoOtherFile) {
  const auto reads = [](const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY);
    char byte = 0;
    return fd >= 0 && read(fd, &byte, 1) == 1;
  };
  // By Landlock, to which the filter leaves what is opened for reading.
  const auto forbidden = [](int fd) { return fd < 0 && errno == EACCES; };
  EXPECT_TRUE(InSandbox([&] { return reads(path_); }, {path_}));
  WriteFile(other_, "secret");
  // Where the kernel has Landlock, which promises are not made of.
  if (syscall(444 /* landlock_create_ruleset */, nullptr, 0, 1) < 0) {
    GTEST_SKIP() << "no Landlock here";
  }
  for (const std::string& path : {other_, std::string("/etc/passwd"), std::string("/")}) {
    EXPECT_EQ(access(path.c_str(), R_OK), 0) << path;
    EXPECT_TRUE(InSandbox([&] { return forbidden(open(path.c_str(), O_RDONLY)); }, {path_}))
        << path;
  }
}

TEST_F(Sandbox, HoldsForThreadsThatRanBefore) {
  EXPECT_EQ(InChild([] {
              std::atomic<bool> entered = false;
              bool refused = false;
              std::thread before([&] {
                while (!entered) std::this_thread::yield();
                refused = IsFiltered(socket(AF_INET, SOCK_STREAM, 0));
              });
              if (!EnterSandbox({}).ok()) return 1;
              entered = true;
              before.join();
              return refused ? kHolds : 2;
            }),
            kHolds);
}

TEST_F(Sandbox, ThreadsAndMemoryAreThere) {
  EXPECT_TRUE(InSandbox([] {
    int sum = 0;
    std::thread([&] { sum += static_cast<int>(std::vector<char>(10'000'000, 1).back()); }).join();
    return sum == 1;
  }));
}

TEST_F(Sandbox, AModelRunsAsWithout) {
  const std::vector<std::string> generate = {"generate", "-p", "ROMEO:", "-n", "20", "-s", "1"};
  std::vector<std::string> sandboxed = generate;
  sandboxed.push_back("--sandbox");
  const ProgramResult result = RunProgram(sandboxed);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, RunProgram(generate).out);
  EXPECT_EQ(RunProgram({"inspect", "--sandbox"}).out, RunProgram({"inspect"}).out);
  EXPECT_EQ(RunProgram({"tokenize", "--sandbox", "LICENSE"}).out,
            RunProgram({"tokenize", "LICENSE"}).out);
  EXPECT_EQ(RunProgram({"perplexity", "--sandbox", "-f", "LICENSE", "-c", "64"}).status, 0);
}

// It loads the model once for each number of threads.
TEST_F(Sandbox, ABenchmarkMeasuresSeveralTimes) {
  const ProgramResult result =
      RunProgram({"bench", "--sandbox", "-t", "1,2", "-p", "8", "-n", "4", "-r", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST_F(Sandbox, SavingIsRefusedInOneSentence) {
  ExpectError(RunProgram({"generate", "--sandbox", "-p", "A", "-n", "1", "--session", other_}), 2,
              HasSubstr(other_));
  const ProgramResult chat =
      RunOnTerminal({"chat", "--sandbox", "-n", "5"}, "ROMEO:\n/save " + other_ + "\n/exit\n",
                    {{"TERM", "xterm"}});
  EXPECT_EQ(chat.status, 0);
  EXPECT_THAT(chat.out, HasSubstr(other_ + " cannot be created"));
  EXPECT_EQ(access(other_.c_str(), F_OK), -1);
}

// Runs `act` in a child that may accept connections; whether it returned true there.
bool InServersSandbox(const std::function<bool()>& act) {
  return InChild([&] {
           if (!EnterSandbox({}, SandboxNetwork::kServes).ok()) return 1;
           return act() ? kHolds : 2;
         }) == kHolds;
}

// A socket that listens on the loopback interface, at *address; -1 where that is refused.
int Listen(sockaddr_in* address) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  *address = {};
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(*address);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(address), size) != 0) return -1;
  if (listen(fd, 4) != 0) return -1;
  return getsockname(fd, reinterpret_cast<sockaddr*>(address), &size) == 0 ? fd : -1;
}

TEST(ServersSandbox, ListensButMakesNoConnection) {
  sockaddr_in other;
  const int listener = Listen(&other);
  ASSERT_GE(listener, 0);
  const auto* to = reinterpret_cast<const sockaddr*>(&other);
  EXPECT_TRUE(InServersSandbox([] {
    sockaddr_in own;
    return Listen(&own) >= 0;
  }));
  EXPECT_TRUE(InServersSandbox([&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return fd >= 0 && IsFiltered(connect(fd, to, sizeof(other)));
  })) << "connect";
  EXPECT_TRUE(InServersSandbox([&] {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    return IsFiltered(sendto(fd, "x", 1, MSG_FASTOPEN, to, sizeof(other)));
  })) << "a connection made by what is sent first";
  EXPECT_TRUE(InServersSandbox([] { return IsFiltered(socket(AF_INET, SOCK_DGRAM, 0)); }))
      << "datagrams";
  EXPECT_TRUE(InServersSandbox([] { return IsFiltered(socket(AF_NETLINK, SOCK_RAW, 0)); }))
      << "raw sockets";
  // What connects to whom it sends to, and what a server has no use for.
  constexpr int kSctp = 132, kMultipath = 262;
  const auto refuses = [](int domain, int protocol) {
    return InServersSandbox([=] { return IsFiltered(socket(domain, SOCK_STREAM, protocol)); });
  };
  for (const int domain : {AF_INET, AF_INET6}) {
    EXPECT_FALSE(refuses(domain, IPPROTO_TCP)) << domain;
    for (const int protocol : {kSctp, kMultipath}) EXPECT_TRUE(refuses(domain, protocol)) << domain;
  }
  for (const int domain : {AF_UNIX, AF_TIPC, AF_VSOCK}) EXPECT_TRUE(refuses(domain, 0)) << domain;
  EXPECT_TRUE(InServersSandbox([] { return IsFiltered(open("/tmp", O_TMPFILE | O_RDWR, 0600)); }));
  close(listener);
}

}  // namespace
}  // namespace inlay
