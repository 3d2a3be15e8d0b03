// The layout of --help.
#ifndef INLAY_TOOLS_FLAGS_HELP_FORMAT_H_
#define INLAY_TOOLS_FLAGS_HELP_FORMAT_H_

#include <memory>

#include "CLI/App.hpp"

namespace inlay {

// Two columns, within 100 characters: what can be written, and what it means. Which options exclude
// each other is left to the message for those who write both.
std::shared_ptr<CLI::FormatterBase> MakeHelpFormat();

// Sorts the commands of the program into groups with a heading each.
void GroupCommands(CLI::App& app);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_HELP_FORMAT_H_
