// Scripts by which shells complete the program's command lines.
#ifndef INLAY_TOOLS_SHELL_COMPLETION_H_
#define INLAY_TOOLS_SHELL_COMPLETION_H_

#include <string>

#include "tools/declarations.h"

namespace inlay {

// Each completes commands, options, the words and files that can be their values, and arguments.
// For bash 4.4 and later; it needs no other script.
std::string BashCompletion(const ProgramDeclaration& program);
// For zsh, as a file _inlay in $fpath or for `source`.
std::string ZshCompletion(const ProgramDeclaration& program);
// For fish 3. Arguments are completed with what any argument of the command can be.
std::string FishCompletion(const ProgramDeclaration& program);

}  // namespace inlay

#endif  // INLAY_TOOLS_SHELL_COMPLETION_H_
