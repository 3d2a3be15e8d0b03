// The whole program: reads the command line, runs a subcommand, and turns errors into one sentence
// and an exit status.
#ifndef INLAY_TOOLS_CLI_H_
#define INLAY_TOOLS_CLI_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/commands.h"

namespace inlay {

// What a command line asks for: something to do, or a text (help, the version) to print.
struct ParsedCommandLine {
  Action action;
  std::string text;
};

// Reads a command line and does nothing yet. A usage error when it makes no sense.
absl::StatusOr<ParsedCommandLine> ParseCommandLine(int argc, char** argv);

// What main() does. 0: done, 1: an error while running, 2: a command line that makes no sense.
int RunCommandLine(int argc, char** argv);

}  // namespace inlay

#endif  // INLAY_TOOLS_CLI_H_
