#include "tools/shell_word.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "base/printable.h"

namespace inlay {

std::string ShellQuoted(absl::string_view text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ShellWord(absl::string_view text) {
  constexpr absl::string_view kPlain = "-_./:=@%+,";
  const bool plain = std::all_of(text.begin(), text.end(), [&](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || kPlain.find(c) != kPlain.npos;
  });
  if (plain && !text.empty()) return std::string(text);
  const std::string shown = PrintableName(text);
  if (shown == text) return ShellQuoted(text);
  // Its escapes are those of such a word.
  return absl::StrCat("$'", absl::StrReplaceAll(shown, {{"'", "\\'"}}), "'");
}

}  // namespace inlay
