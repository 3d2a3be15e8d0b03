#include "tests/tools/program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

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

int ExitStatus(pid_t pid) {
  int status = 0;
  EXPECT_EQ(waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& s : strings) pointers.push_back(s.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

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
    if (!options.folder.empty() && chdir(options.folder.c_str()) != 0) _exit(126);
    execve(program.c_str(), argv_pointers.data(), env_pointers.data());
    _exit(127);
  }
  if (options.while_running) options.while_running(pid);
  ProgramResult result;
  result.status = ExitStatus(pid);
  result.out = Contents(out);
  result.err = Contents(err);
  for (int fd : {in, out, err}) close(fd);
  EXPECT_NE(result.status, 127) << "no program at " << program;
  return result;
}

ProgramResult RunOnTerminal(const std::vector<std::string>& arguments, const std::string& typed,
                            const std::map<std::string, std::string>& env) {
  std::vector<std::string> argv = Arguments(kProgram, arguments);
  std::vector<std::string> environment = Environment(env);
  std::vector<char*> argv_pointers = Pointers(argv);
  std::vector<char*> env_pointers = Pointers(environment);
  int terminal = -1;
  const pid_t pid = forkpty(&terminal, nullptr, nullptr, nullptr);
  if (pid == 0) {
    execve(kProgram, argv_pointers.data(), env_pointers.data());
    _exit(127);
  }
  ProgramResult result;
  EXPECT_EQ(write(terminal, typed.data(), typed.size()), static_cast<ssize_t>(typed.size()));
  char buffer[4096];
  ssize_t n = 0;
  // Fails when the program has closed the other end.
  while ((n = read(terminal, buffer, sizeof(buffer))) > 0)
    result.out.append(buffer, static_cast<size_t>(n));
  close(terminal);
  result.status = ExitStatus(pid);
  return result;
}

void ExpectError(const ProgramResult& result, int status,
                 const testing::Matcher<std::string>& message) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_THAT(result.err, StartsWith("inlay: "));
  EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
  EXPECT_THAT(result.err, testing::EndsWith("\n"));
  EXPECT_THAT(result.err, message);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::ostringstream contents;
  contents << file.rdbuf();
  return contents.str();
}

std::string ScratchPath(const std::string& name) {
  // Tests of one program may run at the same time, each in its own process.
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "inlay_" + test->test_suite_name() + "_" + test->name() + "_" + name;
}

void WriteFile(const std::string& path, const std::string& contents) {
  std::ofstream file(path, std::ios::binary);
  file << contents;
  file.close();
  EXPECT_TRUE(file.good()) << path;
}

}  // namespace inlay
