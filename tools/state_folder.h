// Where the program keeps what belongs to a user: chats and the lines typed in them.
#ifndef INLAY_TOOLS_STATE_FOLDER_H_
#define INLAY_TOOLS_STATE_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// The folder `name` in $XDG_STATE_HOME/inlay, or else in ~/.local/state/inlay (XDG Base Directory
// Specification), which is made where it is missing, for its owner alone. NotFound when neither
// variable is set to an absolute path; Unavailable when the folder cannot be made.
absl::StatusOr<std::string> StateFolder(absl::string_view name);

}  // namespace inlay

#endif  // INLAY_TOOLS_STATE_FOLDER_H_
