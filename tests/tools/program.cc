#include "tests/tools/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utmp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// CMake names the program; under Bazel it is among the test's files.
#ifdef INLAY_PROGRAM
constexpr char kProgram[] = INLAY_PROGRAM;
#else
constexpr char kProgram[] = "tools/inlay";
#endif

// An open file without a name, which goes with its last descriptor.
int NamelessFile(const std::string& contents) {
  std::FILE* file = std::tmpfile();
  const int fd = dup(fileno(file));
  std::fclose(file);
  EXPECT_EQ(pwrite(fd, contents.data(), contents.size(), 0), static_cast<ssize_t>(contents.size()));
  return fd;
}

std::string Contents(int fd) {
  std::string all(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, all.data(), all.size(), 0), static_cast<ssize_t>(all.size()));
  return all;
}

std::vector<std::string> Arguments(const std::string& program,
                                   const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {program};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

std::vector<std::string> Environment(const std::map<std::string, std::string>& variables) {
  std::vector<std::string> env = {std::string("PATH=") + std::getenv("PATH")};
#ifndef INLAY_PROGRAM
  env.push_back("INLAY_MODEL=models/bard.gguf");
#endif
  for (const auto& [name, value] : variables) env.push_back(name + "=" + value);
  return env;
}

int ExitStatus(pid_t pid, rusage* usage = nullptr) {
  int status = 0;
  EXPECT_EQ(wait4(pid, &status, 0, usage), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// As on a terminal: who starts tests in the background, or by nohup, has these signals ignored.
void TakeSignals() {
  for (const int number : {SIGINT, SIGQUIT, SIGHUP}) signal(number, SIG_DFL);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::string InlayProgram() { return kProgram; }

nlohmann::json ProgramResult::Json() const {
  nlohmann::json json = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(json.is_discarded()) << out;
  return json;
}

ProgramResult RunProgram(const std::vector<std::string>& arguments, const ProgramOptions& options) {
  const int in = NamelessFile(options.input);
  const int out = NamelessFile("");
  const int err = NamelessFile("");
  const std::string program = options.program.empty() ? kProgram : options.program;
  std::vector<std::string> argv = Arguments(program, arguments);
  std::vector<std::string> env = Environment(options.env);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(env);

  const pid_t pid = fork();
  if (pid == 0) {
    dup2(in, STDIN_FILENO);
    dup2(options.output_path.empty() ? out : open(options.output_path.c_str(), O_WRONLY),
         STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    for (int fd : {in, out, err}) close(fd);
    if (options.output_closed) close(STDOUT_FILENO);
    if (options.output_unread) {
      int ends[2];
      if (pipe(ends) != 0) _exit(126);
      dup2(ends[1], STDOUT_FILENO);
      for (int end : ends) close(end);
    }
    TakeSignals();
    signal(SIGPIPE, options.ignores_pipe_signal ? SIG_IGN : SIG_DFL);
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    if (options.address_space != 0) {
      const rlimit limit{options.address_space, options.address_space};
      setrlimit(RLIMIT_AS, &limit);
    }
    if (options.act) _exit(options.act());
    execve(program.c_str(), argv_pointers.data(), env_pointers.data());
    _exit(127);
  }
  if (options.while_running) options.while_running(pid);
  ProgramResult result;
  rusage usage = {};
  result.status = ExitStatus(pid, &usage);
  result.peak_bytes = static_cast<size_t>(usage.ru_maxrss) * 1024;
  result.out = Contents(out);
  result.err = Contents(err);
  for (int fd : {in, out, err}) close(fd);
  EXPECT_NE(result.status, 127) << "no program at " << program;
  return result;
}

Terminal::Terminal(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& env, const std::string& output_path) {
  std::vector<std::string> argv = Arguments(kProgram, arguments);
  std::vector<std::string> environment = Environment(env);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(environment);
  EXPECT_EQ(openpty(&terminal_, &own_end_, nullptr, nullptr, nullptr), 0);
  pid_ = fork();
  if (pid_ == 0) {
    close(terminal_);
    login_tty(own_end_);
    if (!output_path.empty()) {
      const int out = open(output_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
      if (dup2(out, STDOUT_FILENO) < 0) _exit(126);
    }
    TakeSignals();
    execve(kProgram, argv_pointers.data(), env_pointers.data());
    _exit(127);
  }
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    ExitStatus(pid_);
  }
  close(own_end_);
  close(terminal_);
}

void Terminal::Type(const std::string& text) {
  EXPECT_EQ(write(terminal_, text.data(), text.size()), static_cast<ssize_t>(text.size()));
}

bool Terminal::ReadSome() {
  pollfd wait = {.fd = terminal_, .events = POLLIN, .revents = 0};
  if (poll(&wait, 1, kLongWaitMs) != 1) return false;
  char buffer[4096];
  const ssize_t n = read(terminal_, buffer, sizeof(buffer));
  if (n > 0) out_.append(buffer, static_cast<size_t>(n));
  return n > 0;
}

void Terminal::WaitFor(const std::string& text) {
  size_t at = 0;
  while ((at = out_.find(text, seen_)) == std::string::npos) {
    if (!ReadSome()) {
      ADD_FAILURE() << "no '" << text << "' in: " << out_.substr(seen_);
      return;
    }
  }
  seen_ = at + text.size();
}

void Terminal::ReadUntil(const std::function<bool(const std::string&)>& done) {
  while (!done(out_)) {
    if (!ReadSome()) {
      ADD_FAILURE() << "not what was waited for: " << out_;
      return;
    }
  }
  seen_ = out_.size();
}

void Terminal::Resize(unsigned short columns) {
  winsize size = {};
  size.ws_row = 24;
  size.ws_col = columns;
  EXPECT_EQ(ioctl(terminal_, TIOCSWINSZ, &size), 0);
}

termios Terminal::Settings() const {
  termios settings = {};
  EXPECT_EQ(tcgetattr(own_end_, &settings), 0);
  return settings;
}

ProgramResult Terminal::Finish() {
  // While this process holds the other end too, reading does not fail when the program is gone.
  ProgramResult result;
  int status = 0;
  const bool ends = WaitUntil([&] {
    for (pollfd wait = {.fd = terminal_, .events = POLLIN, .revents = 0};
         poll(&wait, 1, 0) == 1 && ReadSome();) {
    }
    return waitpid(pid_, &status, WNOHANG) != 0;
  });
  if (!ends) {
    ADD_FAILURE() << "the program does not end; it showed: " << out_;
    return result;
  }
  pid_ = -1;
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  for (pollfd rest = {.fd = terminal_, .events = POLLIN, .revents = 0};
       poll(&rest, 1, 0) == 1 && ReadSome();) {
  }
  result.out = out_;
  return result;
}

ProgramResult RunOnTerminal(const std::vector<std::string>& arguments, const std::string& typed,
                            const std::map<std::string, std::string>& env) {
  Terminal terminal(arguments, env);
  terminal.Type(typed);
  return terminal.Finish();
}

void ExpectError(const ProgramResult& result, int status,
                 const testing::Matcher<std::string>& message) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_THAT(result.err, StartsWith("inlay: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, testing::EndsWith("\n"));
  EXPECT_THAT(result.err, message);
}

size_t ThreadsOf(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.rfind("State:\tZ", 0) == 0) return 0;
    if (line.rfind("Threads:", 0) == 0) return std::stoul(line.substr(8));
  }
  return 0;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

std::string ScratchPath(const std::string& name) {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return TempPath(absl::StrCat(test->test_suite_name(), "_", test->name(), "_", name));
}

void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace inlay
