#include "tools/sandbox.h"

#ifdef __linux__
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#endif

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

#if defined(__linux__) && __has_include(<linux/landlock.h>)
#include <linux/landlock.h>
#include <sys/stat.h>
#define INLAY_HAS_LANDLOCK 1
#endif

#if defined(__linux__) && defined(__x86_64__)
#define INLAY_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__linux__) && defined(__aarch64__)
#define INLAY_AUDIT_ARCH AUDIT_ARCH_AARCH64
#endif

namespace inlay {
namespace {

#ifdef INLAY_AUDIT_ARCH

// System calls that open no file and affect no other process. A call that is neither listed here
// nor allowed below fails with EPERM.
constexpr uint32_t kAllowed[] = {
    // memory
    SYS_brk,
    SYS_mmap,
    SYS_munmap,
    SYS_mprotect,
    SYS_mremap,
    SYS_madvise,
    SYS_membarrier,
    // threads and time
    SYS_futex,
    SYS_set_robust_list,
    SYS_rseq,
    SYS_set_tid_address,
    SYS_sched_yield,
    SYS_sched_getaffinity,
    SYS_clock_gettime,
    SYS_clock_getres,
    SYS_clock_nanosleep,
    SYS_nanosleep,
    SYS_gettimeofday,
    SYS_restart_syscall,
    SYS_exit,
    SYS_exit_group,
    SYS_getpid,
    SYS_gettid,
    SYS_getrusage,
    SYS_sysinfo,
    SYS_uname,
    SYS_getrandom,
    SYS_getcpu,
    SYS_getuid,
    SYS_geteuid,
    SYS_getgid,
    SYS_getegid,
    SYS_getppid,
    // signals to itself
    SYS_rt_sigaction,
    SYS_rt_sigprocmask,
    SYS_rt_sigreturn,
    SYS_sigaltstack,
    SYS_rt_sigtimedwait,
    // what is open
    SYS_read,
    SYS_readv,
    SYS_pread64,
    SYS_write,
    SYS_writev,
    SYS_close,
    SYS_fstat,
    SYS_lseek,
    SYS_dup,
    SYS_dup3,
    SYS_ppoll,
    SYS_pselect6,
    SYS_getdents64,
    SYS_fadvise64,
    // looking at names
    SYS_newfstatat,
    SYS_statx,
    SYS_faccessat,
    SYS_faccessat2,
    SYS_readlinkat,
    SYS_getcwd,
#ifdef __x86_64__
    SYS_poll,
    SYS_select,
    SYS_dup2,
    SYS_stat,
    SYS_lstat,
    SYS_access,
    SYS_readlink,
    SYS_time,
    SYS_arch_prctl,
#endif
};

// What a server needs besides, to accept connections and to wait for them. It has no connect().
constexpr uint32_t kServes[] = {
    SYS_bind,           SYS_listen,          SYS_accept,     SYS_accept4,  SYS_getsockname,
    SYS_getpeername,    SYS_getsockopt,      SYS_setsockopt, SYS_shutdown, SYS_recvmsg,
    SYS_recvfrom,       SYS_epoll_create1,   SYS_epoll_ctl,  SYS_eventfd2, SYS_epoll_pwait,
    SYS_timerfd_create, SYS_timerfd_settime,
#ifdef __x86_64__
    SYS_epoll_wait,     SYS_epoll_create,
#endif
};

// TCGETS2, TCSETS2, TCSETSW2 and TCSETSF2 of <asm/termbits.h>, which cannot be included beside the
// C library's headers. isatty() and tcgetattr() of glibc 2.42 and later make no other request.
constexpr uint32_t kTcgets2 = 0x802C542A;
constexpr uint32_t kTcsets2 = 0x402C542B;
constexpr uint32_t kTcsetsw2 = 0x402C542C;
constexpr uint32_t kTcsetsf2 = 0x402C542D;

// The low half of a call's argument: flags and process ids fit in it.
constexpr uint32_t Argument(size_t index) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) + index * sizeof(uint64_t));
}

constexpr sock_filter Load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
constexpr sock_filter Return(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }
constexpr uint32_t Errno(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

class Filter {
 public:
  explicit Filter(SandboxNetwork network) {
    program_ = {Load(offsetof(seccomp_data, arch)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, INLAY_AUDIT_ARCH, 1, 0),
                Return(SECCOMP_RET_KILL_PROCESS), Load(offsetof(seccomp_data, nr))};
    // Call numbers of the x32 ABI are above all those listed, so they are refused.
    for (const uint32_t call : kAllowed) Allow(call);
    // Files may be opened for reading only; O_TMPFILE is among these bits too.
    constexpr uint32_t kWrites = O_WRONLY | O_RDWR | O_CREAT | O_TRUNC | O_APPEND | __O_TMPFILE;
    AllowWithout(SYS_openat, 2, kWrites & ~static_cast<uint32_t>(O_DIRECTORY));
#ifdef __x86_64__
    AllowWithout(SYS_open, 1, kWrites & ~static_cast<uint32_t>(O_DIRECTORY));
#endif
    // Threads, but no processes. clone3 hides its flags behind a pointer: the C library falls back
    // to clone where there is none, and likewise from openat2.
    AllowWith(SYS_clone, 0, kThread);
    Answer(SYS_clone3, Errno(ENOSYS));
    Answer(SYS_openat2, Errno(ENOSYS));
    // Signals to itself, as abort() sends.
    AllowEqual(SYS_tgkill, 0, static_cast<uint32_t>(getpid()));
    // Names of threads and of memory; limits may be read (their new value is no pointer).
    AllowEqual(SYS_prctl, 0, PR_SET_NAME);
    AllowEqual(SYS_prctl, 0, PR_SET_VMA);
    AllowEqual(SYS_prlimit64, 2, 0);
    // Not F_SETOWN, which chooses a process to be signalled.
    for (const uint32_t command : {F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD, F_DUPFD_CLOEXEC})
      AllowEqual(SYS_fcntl, 1, command);
    // Terminals may be configured and measured, but no input may be inserted into them.
    for (const uint32_t request :
         {TCGETS, TCSETS, TCSETSW, TCSETSF, TIOCGWINSZ, TIOCGPGRP, FIONREAD})
      AllowEqual(SYS_ioctl, 1, request);
    for (const uint32_t request : {kTcgets2, kTcsets2, kTcsetsw2, kTcsetsf2})
      AllowEqual(SYS_ioctl, 1, request);
    if (network == SandboxNetwork::kServes) AllowServing();
    program_.push_back(Return(Errno(EPERM)));
  }

  absl::Status Install() {
    sock_fprog program{.len = static_cast<unsigned short>(program_.size()),
                       .filter = program_.data()};
    // All threads, including those that a library may have started.
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0)
      return absl::OkStatus();
    return absl::UnimplementedError(absl::StrCat(
        "--sandbox cannot be enforced here: the kernel refuses seccomp (errno ", errno, ")"));
  }

 private:
  static constexpr uint32_t kThread = 0x00010000;  // CLONE_THREAD

  void AllowServing() {
    for (const uint32_t call : kServes) Allow(call);
    // Sockets for TCP alone: one for datagrams needs no connection to send to anybody, and SCTP,
    // TIPC and others make a connection in passing, by what is sent first. TCP does so with
    // MSG_FASTOPEN only.
    RefuseUnlessEither(SYS_socket, 0, AF_INET, AF_INET6);
    RefuseUnlessEither(SYS_socket, 2, 0, IPPROTO_TCP);
    constexpr uint32_t kNoStream = 0xE;  // of the bits of a type, SOCK_STREAM has the lowest
    AllowWithout(SYS_socket, 1, kNoStream);
    AllowWithout(SYS_sendmsg, 2, MSG_FASTOPEN);
    AllowWithout(SYS_sendto, 3, MSG_FASTOPEN);
    AllowEqual(SYS_ioctl, 1, FIONBIO);
  }

  void Answer(uint32_t call, uint32_t action) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1));
    program_.push_back(Return(action));
  }
  void Allow(uint32_t call) { Answer(call, SECCOMP_RET_ALLOW); }

  // Allows the call if a test of its argument succeeds; otherwise the next rule decides.
  void AllowIf(uint32_t call, size_t argument, const sock_filter& test) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    program_.push_back(Load(Argument(argument)));
    program_.push_back(test);
    program_.push_back(Return(SECCOMP_RET_ALLOW));
    program_.push_back(Load(offsetof(seccomp_data, nr)));
  }
  void AllowEqual(uint32_t call, size_t argument, uint32_t value) {
    AllowIf(call, argument, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1));
  }
  void AllowWith(uint32_t call, size_t argument, uint32_t bits) {
    AllowIf(call, argument, BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 0, 1));
  }
  void AllowWithout(uint32_t call, size_t argument, uint32_t bits) {
    AllowIf(call, argument, BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, 1, 0));
  }
  // Refuses the call if its argument has neither value; otherwise a later rule decides.
  void RefuseUnlessEither(uint32_t call, size_t argument, uint32_t one, uint32_t other) {
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 5));
    program_.push_back(Load(Argument(argument)));
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, one, 2, 0));
    program_.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, other, 1, 0));
    program_.push_back(Return(Errno(EPERM)));
    program_.push_back(Load(offsetof(seccomp_data, nr)));
  }

  std::vector<sock_filter> program_;
};

#ifdef INLAY_HAS_LANDLOCK

// Files that may be read; the kernel refuses all others. A kernel without Landlock is no error:
// --sandbox does not promise what this adds to the filter.
absl::Status RestrictReading(const std::vector<std::string>& readable) {
  // The first version's rights are enough: the filter refuses all that later ones add.
  constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
  constexpr uint64_t kAll = (uint64_t{LANDLOCK_ACCESS_FS_MAKE_SYM} << 1) - 1;
  landlock_ruleset_attr attributes = {};
  attributes.handled_access_fs = kAll;
  const int rules =
      static_cast<int>(syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0));
  if (rules < 0) return absl::OkStatus();
  const auto close_rules = absl::MakeCleanup([rules] { close(rules); });

  // Files of the system: libraries and locales of line editing, descriptions of terminals, the
  // amount of memory, the time zone, and what the name of a server's --host is looked up with. No
  // other file of /etc, where there are keys and passwords.
  std::vector<std::string> allowed = {"/usr",
                                      "/lib",
                                      "/lib64",
                                      "/etc/ld.so.cache",
                                      "/etc/terminfo",
                                      "/etc/termcap",
                                      "/etc/localtime",
                                      "/etc/nsswitch.conf",
                                      "/etc/host.conf",
                                      "/etc/hosts",
                                      "/etc/resolv.conf",
                                      "/etc/gai.conf",
                                      "/dev/tty",
                                      "/dev/null",
                                      "/proc/meminfo",
                                      "/proc/self/status",
                                      "/proc/self/cgroup",
                                      "/sys/fs/cgroup"};
  allowed.insert(allowed.end(), readable.begin(), readable.end());
  for (const std::string& path : allowed) {
    const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (fd < 0) continue;  // opening it will report the error
    struct stat info;
    const bool folder = fstat(fd, &info) == 0 && S_ISDIR(info.st_mode);
    landlock_path_beneath_attr rule = {};
    rule.allowed_access = folder ? kRead : kRead & ~uint64_t{LANDLOCK_ACCESS_FS_READ_DIR};
    rule.parent_fd = fd;
    const auto added = syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(fd);
    if (added != 0) {
      return absl::UnimplementedError(absl::StrCat(
          "--sandbox cannot be enforced here: no rule for ", path, " (errno ", errno, ")"));
    }
  }
  if (syscall(SYS_landlock_restrict_self, rules, 0) == 0) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat(
      "--sandbox cannot be enforced here: the kernel refuses Landlock (errno ", errno, ")"));
}

#else
absl::Status RestrictReading(const std::vector<std::string>&) { return absl::OkStatus(); }
#endif

#endif  // INLAY_AUDIT_ARCH

}  // namespace

absl::Status EnterSandbox(const std::vector<std::string>& readable, SandboxNetwork network) {
#ifdef INLAY_AUDIT_ARCH
  static bool entered = false;
  if (entered) return absl::OkStatus();
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return absl::UnimplementedError("--sandbox cannot be enforced here: the kernel is too old");
  }
  INLAY_RETURN_IF_ERROR(RestrictReading(readable));
  INLAY_RETURN_IF_ERROR(Filter(network).Install());
  entered = true;
  return absl::OkStatus();
#else
  (void)readable;
  (void)network;
  return absl::UnimplementedError(
      "--sandbox cannot be enforced here: it needs Linux on x86-64 or ARM64");
#endif
}

}  // namespace inlay
