// The program's command line, read but not yet acted upon.
#ifndef INLAY_TOOLS_FLAGS_COMMAND_LINE_H_
#define INLAY_TOOLS_FLAGS_COMMAND_LINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "tools/commands/commands.h"

namespace inlay {

// What a command line asks for: something to do, or a text (help, the version) to print.
struct ParsedCommandLine {
  Action action;
  std::string text;
  std::string notes;  // lines for standard error, to be written first
};

// Reads a command line without running it. A usage error when it is invalid.
absl::StatusOr<ParsedCommandLine> ParseCommandLine(int argc, char** argv);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_COMMAND_LINE_H_
