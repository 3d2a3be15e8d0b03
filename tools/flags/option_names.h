// Finds a command's options by the words that name them.
#ifndef INLAY_TOOLS_FLAGS_OPTION_NAMES_H_
#define INLAY_TOOLS_FLAGS_OPTION_NAMES_H_

#include "CLI/App.hpp"
#include "absl/strings/string_view.h"

namespace inlay {

// The option of `command` that `word` names ("--model" or "-m"); null where there is none. CLI11's
// own search allocates in functions that are noexcept, so that a lack of memory ends the process.
const CLI::Option* FindOption(const CLI::App& command, absl::string_view word);

// Whether `word`, an argument of `command` such as "-em" or "-t8", consists of short options of the
// command: of flags, and at last of any option, whose value may follow in the same word where it
// begins with a digit or '-'. CLI11 takes any text for that value, so that a longer name, "-cram",
// would be read as "-c ram".
bool IsShortOptions(const CLI::App& command, absl::string_view word);

// Whether `word`, an argument of `command`, names an option whose value is the next argument:
// "--model", "-m", or "-em" where -e is a flag.
bool ValueFollows(const CLI::App& command, absl::string_view word);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_OPTION_NAMES_H_
