// Words of a shell's command line.
#ifndef INLAY_TOOLS_SHELL_WORD_H_
#define INLAY_TOOLS_SHELL_WORD_H_

#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

// `text` in single quotes, as bash, zsh and sh read it.
std::string ShellQuoted(absl::string_view text);

// The same, without quotes where there is nothing to quote, and safe to print: where PrintableName
// escapes something, in the form $'\n', which bash and zsh read.
std::string ShellWord(absl::string_view text);

}  // namespace inlay

#endif  // INLAY_TOOLS_SHELL_WORD_H_
