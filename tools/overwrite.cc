#include "tools/overwrite.h"

#include <unistd.h>

#include <iostream>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tools/output.h"

namespace inlay {
namespace {

bool IsYes(const std::optional<std::string>& line) {
  if (!line.has_value()) return false;
  const absl::string_view word = absl::StripAsciiWhitespace(*line);
  return absl::EqualsIgnoreCase(word, "y") || absl::EqualsIgnoreCase(word, "yes");
}

}  // namespace

void AddForceFlag(CLI::App& command, bool& force) {
  command.add_flag("--force", force, "replace an existing file of the same kind without asking");
}

absl::StatusOr<Replace> MayReplace(const std::string& path, FileKind kind, bool force,
                                   absl::string_view how, AskForLine ask) {
  const absl::Status status =
      CheckReplace(path, kind, force ? Replace::kSameKind : Replace::kNothing);
  if (status.ok()) return force ? Replace::kSameKind : Replace::kNothing;
  if (!absl::IsAlreadyExists(status)) return status;
  if (isatty(STDIN_FILENO) != 1 || isatty(STDERR_FILENO) != 1)
    return absl::AlreadyExistsError(absl::StrCat(status.message(), "; ", how, " replaces it"));
  if (IsYes(ask(absl::StrCat(path, " exists"), "replace it? [y/N] "))) return Replace::kSameKind;
  return absl::AlreadyExistsError(absl::StrCat(path, " exists and was left as it is"));
}

absl::StatusOr<Replace> MayReplace(const std::string& path, FileKind kind, bool force) {
  return MayReplace(
      path, kind, force, "--force", [](const std::string& fact, const char* question) {
        Output err(STDERR_FILENO);
        err.Write(absl::StrCat(fact, "; ", question));
        err.Flush();
        std::string line;
        return std::getline(std::cin, line) ? std::optional<std::string>(line) : std::nullopt;
      });
}

}  // namespace inlay
