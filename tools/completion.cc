#include "tools/completion.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/utf8.h"
#include "io/hub/environment.h"

namespace inlay {

std::vector<std::string> CompletePath(absl::string_view path) {
  namespace fs = std::filesystem;
  const size_t slash = path.rfind('/');
  const absl::string_view folder = slash == path.npos ? "" : path.substr(0, slash + 1);
  const absl::string_view name = slash == path.npos ? path : path.substr(slash + 1);
  std::vector<std::string> words;
  std::error_code error;
  const std::string opened = folder.empty() ? "." : ExpandHome(folder);
  for (fs::directory_iterator at(opened, error), end; !error && at != end; at.increment(error)) {
    const std::string found = at->path().filename().string();
    if (!absl::StartsWith(found, name) || (name.empty() && found[0] == '.')) continue;
    if (PrintableName(found) != found) continue;
    std::error_code unknown;  // a file that is gone, or may not be looked at
    words.push_back(absl::StrCat(folder, found, at->is_directory(unknown) ? "/" : " "));
  }
  std::sort(words.begin(), words.end());
  return words;
}

std::string CommonBeginning(const std::vector<std::string>& words) {
  if (words.empty()) return "";
  absl::string_view common = words.front();
  for (const std::string& word : words) {
    const size_t most = std::min(common.size(), word.size());
    size_t same = 0;
    while (same < most && common[same] == word[same]) ++same;
    common = common.substr(0, same);
  }
  return std::string(common.substr(0, common.size() - IncompleteUtf8Tail(common)));
}

}  // namespace inlay
