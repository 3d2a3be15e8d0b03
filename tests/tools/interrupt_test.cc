// Ctrl-C, signals and pipes that close: what was running stops, and the terminal is as it was.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/tools/program.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using testing::HasSubstr;

class Interrupt : public testing::Test {
 protected:
  // A chat whose answers do not end by themselves.
  Interrupt() : terminal_({"chat", "-n", "-1", "-c", "1000000"}, {{"TERM", "xterm"}}) {
    before_ = terminal_.Settings();
    terminal_.WaitFor("/help lists");
    terminal_.WaitFor("> ");
  }

  // The answer to a line has begun.
  void Ask() {
    terminal_.Type("ROMEO:\n");
    terminal_.WaitFor("ROMEO:");
    terminal_.WaitFor("\n");
    terminal_.WaitFor("e");
  }

  void ExpectTerminalRestored() {
    const termios now = terminal_.Settings();
    EXPECT_EQ(now.c_lflag, before_.c_lflag);
    EXPECT_EQ(now.c_iflag, before_.c_iflag);
    EXPECT_EQ(now.c_oflag, before_.c_oflag);
    EXPECT_EQ(std::memcmp(now.c_cc, before_.c_cc, sizeof(now.c_cc)), 0);
  }

  Terminal terminal_;
  termios before_;
};

TEST_F(Interrupt, OnceStopsTheAnswerAndTheChatGoesOn) {
  for (int turn = 1; turn <= 3; ++turn) {
    Ask();
    terminal_.Type(kCtrlC);
    terminal_.WaitFor("> ");
    terminal_.Type("/stats\n");
    terminal_.WaitFor("turns: " + std::to_string(turn) + ";");
    terminal_.WaitFor("> ");
  }
  terminal_.Type("/rewind 2\n");
  terminal_.WaitFor("back after turn 1");
  terminal_.WaitFor("> ");
  terminal_.Type("/exit\n");
  EXPECT_EQ(terminal_.Finish().status, 0);
  ExpectTerminalRestored();
}

// What is typed is cleared first; see chat_terminal_test.cc.
TEST_F(Interrupt, TwiceAtThePromptEndsTheProgram) {
  terminal_.Type("half a line");
  terminal_.WaitFor("half a line");
  terminal_.Type(kCtrlC);
  terminal_.WaitFor("> ");
  terminal_.Type(kCtrlC);
  terminal_.WaitFor("once more ends the chat");
  terminal_.WaitFor("> ");
  terminal_.Type(kCtrlC);
  EXPECT_EQ(terminal_.Finish().status, 0);
  ExpectTerminalRestored();
}

// The watch over an answer ends with it.
TEST_F(Interrupt, AtThePromptAfterAWholeAnswerCountsThere) {
  Terminal terminal({"chat", "-n", "3"}, {{"TERM", "xterm"}});
  terminal.WaitFor("> ");
  terminal.Type("ROMEO:\n");
  terminal.WaitFor("\n");
  terminal.WaitFor("> ");
  terminal.Type(kCtrlC);
  terminal.WaitFor("once more ends the chat");
  terminal.WaitFor("> ");
  terminal.Type(kCtrlC);
  EXPECT_EQ(terminal.Finish().status, 0);
}

TEST_F(Interrupt, TerminationDuringAnAnswer) {
  Ask();
  kill(terminal_.pid(), SIGTERM);
  EXPECT_EQ(terminal_.Finish().status, 128 + SIGTERM);
  ExpectTerminalRestored();
}

TEST_F(Interrupt, TerminationAtThePrompt) {
  for (const int signal : {SIGTERM, SIGHUP}) {
    Terminal terminal({"chat"}, {{"TERM", "xterm"}});
    const termios before = terminal.Settings();
    terminal.WaitFor("> ");
    kill(terminal.pid(), signal);
    EXPECT_EQ(terminal.Finish().status, 128 + signal);
    EXPECT_EQ(terminal.Settings().c_lflag, before.c_lflag);
  }
}

// Where nobody types there is nobody to go on with the chat after Ctrl-C.
TEST(InterruptedChat, EndsWhereNobodyTypes) {
  const std::string path = ScratchPath("answers");
  WriteFile(path, "");
  const ProgramResult result = RunProgram(
      {"chat", "-n", "-1", "-c", "1000000"},
      {.input = "ROMEO:\nJULIET:\n", .output_path = path, .while_running = [&](pid_t pid) {
         EXPECT_TRUE(WaitUntil([&] { return !ReadFile(path).empty(); }));
         kill(pid, SIGINT);
       }});
  EXPECT_EQ(result.status, 128 + SIGINT);
  EXPECT_THAT(result.err, HasSubstr("interrupted"));
  EXPECT_EQ(ReadFile(path).back(), '\n') << "what there is of the answer";
  unlink(path.c_str());
}

// A program whose output goes into a pipe that takes little.
class ClosedPipe : public testing::Test {
 protected:
  ClosedPipe() : path_(ScratchPath("pipe")) { EXPECT_EQ(mkfifo(path_.c_str(), 0600), 0); }
  ~ClosedPipe() override { unlink(path_.c_str()); }

  ProgramResult Generate(const std::function<void(pid_t pid, int pipe)>& while_running) {
    return RunProgram({"generate", "-p", "ROMEO:", "-n", "-1", "-c", "1000000", "--ignore-eos"},
                      {.output_path = path_, .while_running = [&](pid_t pid) {
                         const int pipe = open(path_.c_str(), O_RDONLY);
                         fcntl(pipe, F_SETPIPE_SZ, 4096);
                         while_running(pid, pipe);
                         close(pipe);
                       }});
  }

  // The system call in which a process sleeps, as proc(5) tells it; empty where a kernel does not
  // tell.
  static std::string CallOf(const std::string& process) {
    std::ifstream file(absl::StrCat("/proc/", process, "/syscall"));
    std::string call;
    std::getline(file, call);
    return call;
  }

  // Nothing more goes in: the program waits for somebody to read, whatever it is told. It does so
  // in a write to standard output.
  static void WaitUntilItWaits(pid_t pid) {
    const std::string writes = absl::StrCat(SYS_write, " 0x1 ");
    EXPECT_TRUE(WaitUntil([&] { return absl::StartsWith(CallOf(absl::StrCat(pid)), writes); }))
        << CallOf(absl::StrCat(pid));
  }

  // Interrupts the program and waits until it has taken notice; whether it still runs then.
  static bool RunsAfterInterrupt(pid_t pid) {
    kill(pid, SIGINT);
    const uint64_t interrupt = uint64_t{1} << (SIGINT - 1);
    siginfo_t info = {};
    do {
      std::this_thread::yield();
      waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT);
    } while (info.si_pid == 0 && (PendingSignals(pid) & interrupt) != 0);
    return info.si_pid == 0;
  }

  // As proc(5) tells them: those sent to the process, a bit each.
  static uint64_t PendingSignals(pid_t pid) {
    std::ifstream status("/proc/" + std::to_string(pid) + "/status");
    std::string line;
    while (std::getline(status, line)) {
      if (line.rfind("ShdPnd:", 0) == 0) return std::stoull(line.substr(7), nullptr, 16);
    }
    return 0;
  }

  std::string path_;
};

TEST_F(ClosedPipe, EndsTheProgram) {
  const ProgramResult result = Generate([](pid_t, int pipe) {
    char byte = 0;
    EXPECT_EQ(read(pipe, &byte, 1), 1);
  });
  EXPECT_EQ(result.status, 128 + SIGPIPE);
  EXPECT_THAT(result.err, testing::StartsWith("inlay: -c 1000000 is beyond"));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
}

TEST_F(ClosedPipe, InterruptedOnceStopsTwiceQuits) {
  if (CallOf("self").empty()) GTEST_SKIP() << "the kernel does not tell when the program waits";
  const ProgramResult once = Generate([](pid_t pid, int pipe) {
    WaitUntilItWaits(pid);
    EXPECT_TRUE(RunsAfterInterrupt(pid));
    char bytes[4096];
    while (read(pipe, bytes, sizeof(bytes)) > 0) {
    }
  });
  // As the signal ends other programs, so that a loop of the shell ends, too.
  EXPECT_EQ(once.status, 128 + SIGINT) << once.err;
  EXPECT_THAT(once.err, HasSubstr("stopped by: cancelled"));
  const ProgramResult twice = Generate([](pid_t pid, int) {
    WaitUntilItWaits(pid);
    EXPECT_TRUE(RunsAfterInterrupt(pid));
    // Until the handler has run: another thread would take a second signal for the first one.
    WaitUntilItWaits(pid);
    kill(pid, SIGINT);
    siginfo_t info = {};  // else it would wait for a reader for ever
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT), 0);
  });
  EXPECT_EQ(twice.status, 128 + SIGINT);
}

}  // namespace
}  // namespace inlay
