// What Tab adds to a line of a chat: the names of commands, of files and of saved chats.
#ifndef INLAY_TOOLS_COMPLETION_H_
#define INLAY_TOOLS_COMPLETION_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

// Words that can stand from position `begin` of a line on, ascending. A word that is complete ends
// with a space, a folder's name with a slash.
struct Completions {
  size_t begin = 0;
  std::vector<std::string> words = {};
};

// Completes a line up to the cursor.
using Completer = std::function<Completions(absl::string_view line)>;

// Completes a word: what can stand in the place of `begun`, as Completions::words.
using WordCompleter = std::function<std::vector<std::string>(absl::string_view begun)>;

// The files and folders whose paths begin with `path`, in which "~/" stands for the home folder.
// Hidden ones only where their dot is there. Names that a line cannot hold are left out.
std::vector<std::string> CompletePath(absl::string_view path);

// The longest text of whole characters with which all words begin.
std::string CommonBeginning(const std::vector<std::string>& words);

}  // namespace inlay

#endif  // INLAY_TOOLS_COMPLETION_H_
