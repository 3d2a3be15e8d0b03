// Runs the real inlay program and looks at what it did.
#ifndef INLAY_TESTS_TOOLS_PROGRAM_H_
#define INLAY_TESTS_TOOLS_PROGRAM_H_

#include <gmock/gmock.h>
#include <sys/types.h>
#include <termios.h>

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"

namespace inlay {

inline constexpr char kDemoModel[] = "models/bard.gguf";

struct ProgramOptions {
  std::string input = {};                       // on standard input
  std::map<std::string, std::string> env = {};  // beside PATH
  std::string program = {};                     // empty: the inlay program
  std::string folder = {};                      // where it runs; empty: here
  std::string output_path = {};                 // where standard output goes; empty: it is caught
  bool output_closed = false;
  bool output_unread = false;                     // standard output is a pipe that nobody reads
  bool ignores_pipe_signal = false;               // starts with SIGPIPE ignored
  std::function<void(pid_t)> while_running = {};  // called once after the start
  size_t address_space = 0;                       // limit in bytes; 0: none
  std::function<int()> act = {};                  // runs in the child in place of the program
};

struct ProgramResult {
  int status = -1;  // exit status; 128 + signal when a signal ended it
  std::string out;
  std::string err;
  size_t peak_bytes = 0;  // of memory, the largest that it had

  // Standard output as JSON; discarded (and the test failed) when it is none.
  nlohmann::json Json() const;
};

// The path of the inlay program.
std::string InlayProgram();

ProgramResult RunProgram(const std::vector<std::string>& arguments,
                         const ProgramOptions& options = {});

inline constexpr char kCtrlC[] = "\x03";  // as a terminal sends it

// The program with a terminal as all three standard streams, for a test that acts on what it sees.
class Terminal {
 public:
  // Standard output is the file `output_path` instead, if it is not empty.
  Terminal(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& env,
           const std::string& output_path = "");
  ~Terminal();

  void Type(const std::string& text);
  // Reads until the terminal has shown `text` since the last call; a test failure when it does not
  // come or the program ends.
  void WaitFor(const std::string& text);
  // Reads until `done` of everything that the terminal has shown; a test failure likewise.
  void ReadUntil(const std::function<bool(const std::string&)>& done);
  // Sets the width. A terminal begins without a known one, which programs take for 80.
  void Resize(unsigned short columns);
  // How the terminal is set up now.
  termios Settings() const;
  pid_t pid() const { return pid_; }
  // Reads to the end. Everything the terminal showed is `out`.
  ProgramResult Finish();

 private:
  bool ReadSome();  // false at the end, or when nothing comes for long

  pid_t pid_ = -1;
  int terminal_ = -1;
  int own_end_ = -1;  // keeps the settings when the program has gone
  std::string out_;
  size_t seen_ = 0;
};

// The same with a terminal as all three standard streams, on which `typed` is typed. What the
// terminal shows, echo included, is `out`.
ProgramResult RunOnTerminal(const std::vector<std::string>& arguments, const std::string& typed,
                            const std::map<std::string, std::string>& env);

// `result` is an error of this exit status: nothing but one sentence, "inlay: ...", on standard
// error, matching `message`.
void ExpectError(const ProgramResult& result, int status,
                 const testing::Matcher<std::string>& message);

// The number of threads of a program that was started here; 0 once it has ended.
size_t ThreadsOf(pid_t pid);

// The contents of a file.
std::string ReadFile(const std::string& path);

// A path for the running test alone, in a folder that is removed when the tests have run.
std::string ScratchPath(const std::string& name);
void WriteFile(const std::string& path, const std::string& contents);

}  // namespace inlay

#endif  // INLAY_TESTS_TOOLS_PROGRAM_H_
