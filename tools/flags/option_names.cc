#include "tools/flags/option_names.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"

namespace inlay {
namespace {

bool TakesValue(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

}  // namespace

const CLI::Option* FindOption(const CLI::App& command, absl::string_view word) {
  const bool is_long = absl::StartsWith(word, "--");
  if (word.size() < 2 || word[0] != '-' || (!is_long && word.size() != 2)) return nullptr;
  const absl::string_view name = word.substr(is_long ? 2 : 1);
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& names = is_long ? option->get_lnames() : option->get_snames();
    if (std::find(names.begin(), names.end(), name) != names.end()) return option;
  }
  return nullptr;
}

bool IsShortOptions(const CLI::App& command, absl::string_view word) {
  for (size_t i = 1; i < word.size(); ++i) {
    const char name[] = {'-', word[i]};
    const CLI::Option* const option = FindOption(command, absl::string_view(name, sizeof(name)));
    if (option == nullptr) return false;
    if (!TakesValue(*option)) continue;
    return i + 1 == word.size() || word[i + 1] == '-' ||
           absl::ascii_isdigit(static_cast<unsigned char>(word[i + 1]));
  }
  return true;
}

bool ValueFollows(const CLI::App& command, absl::string_view word) {
  if (absl::StartsWith(word, "--")) {
    const CLI::Option* const option = FindOption(command, word);
    return option != nullptr && TakesValue(*option);
  }
  for (size_t i = 1; i < word.size() && word[0] == '-'; ++i) {
    const char name[] = {'-', word[i]};
    const CLI::Option* const option = FindOption(command, absl::string_view(name, sizeof(name)));
    if (option == nullptr) return false;
    if (TakesValue(*option)) return i + 1 == word.size();
  }
  return false;
}

}  // namespace inlay
