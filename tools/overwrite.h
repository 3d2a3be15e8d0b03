// Whether an existing file may be replaced: decided by a flag, or by the user at the terminal.
#ifndef INLAY_TOOLS_OVERWRITE_H_
#define INLAY_TOOLS_OVERWRITE_H_

#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/file/file_kind.h"

namespace inlay {

// Shows a fact ("FILE exists") and asks a question about it; returns the line that is typed, or
// nothing at the end of the input.
using AskForLine =
    absl::FunctionRef<std::optional<std::string>(const std::string& fact, const char* question)>;

// --force
void AddForceFlag(CLI::App& command, bool& force);

// What a command that writes a file of this kind to `path` may replace: kSameKind with `force`, or
// after the answer yes to a question, which is asked when standard input and standard error are a
// terminal. Otherwise AlreadyExists for an existing file, whose message names `how` ("--force") to
// replace it, and the errors of CheckReplace, which nothing overrides.
absl::StatusOr<Replace> MayReplace(const std::string& path, FileKind kind, bool force,
                                   absl::string_view how, AskForLine ask);

// The same for a command that has --force; asks on standard error.
absl::StatusOr<Replace> MayReplace(const std::string& path, FileKind kind, bool force);

}  // namespace inlay

#endif  // INLAY_TOOLS_OVERWRITE_H_
