// The whole program: reads the command line, runs a subcommand, and turns errors into one sentence
// and an exit status.
#ifndef INLAY_TOOLS_CLI_H_
#define INLAY_TOOLS_CLI_H_

namespace inlay {

// What main() does. 0: done, 1: an error while running, 2: an invalid command line.
int RunCommandLine(int argc, char** argv);

}  // namespace inlay

#endif  // INLAY_TOOLS_CLI_H_
