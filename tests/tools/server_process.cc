#include "tests/tools/server_process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/tools/program.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

// This process' environment, for sanitizers and others that watch a program, without the variables
// that are the program's own flags.
std::vector<char*> EnvironmentWithoutFlags() {
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool flag = std::strncmp(*variable, "INLAY_", 6) == 0;
    const bool of_tests = std::strncmp(*variable, "INLAY_DELAYS", 12) == 0;
    if (!flag || of_tests) variables.push_back(*variable);
  }
  variables.push_back(nullptr);
  return variables;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {InlayProgram(), "serve", "--port", "0"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::vector<char*> environment = EnvironmentWithoutFlags();
  int pipes[2];
  EXPECT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  pid_ = fork();
  if (pid_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(pipes[1], STDERR_FILENO);
    execve(argv[0], argv.data(), environment.data());
    _exit(127);
  }
  close(pipes[1]);
  err_fd_ = pipes[0];
  if (!WaitFor("/v1;")) {
    ADD_FAILURE() << "the server does not answer: " << err_;
    return;
  }
  const size_t colon = err_.rfind(':', err_.find("/v1;"));
  port_ = static_cast<uint16_t>(std::atoi(err_.c_str() + colon + 1));
}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (err_fd_ >= 0) close(err_fd_);
}

void ServerProcess::Signal(int signal) const { EXPECT_EQ(kill(pid_, signal), 0); }

bool ServerProcess::ReadSome() {
  pollfd ready = {.fd = err_fd_, .events = POLLIN, .revents = 0};
  if (poll(&ready, 1, kLongWaitMs) <= 0) return false;
  char buffer[4096];
  const ssize_t n = read(err_fd_, buffer, sizeof(buffer));
  if (n <= 0) return false;
  err_.append(buffer, static_cast<size_t>(n));
  return true;
}

bool ServerProcess::WaitFor(const std::string& text) {
  while (err_.find(text) == std::string::npos) {
    if (!ReadSome()) return false;
  }
  return true;
}

int ServerProcess::Wait() {
  while (ReadSome()) {
  }
  int status = 0;
  if (!WaitUntil([&] { return waitpid(pid_, &status, WNOHANG) == pid_; })) {
    ADD_FAILURE() << "the server does not end; it said: " << err_;
    return -1;
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace inlay
