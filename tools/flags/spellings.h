// The options of llama.cpp's programs, as far as they can stand for what Inlay's commands do.
#ifndef INLAY_TOOLS_FLAGS_SPELLINGS_H_
#define INLAY_TOOLS_FLAGS_SPELLINGS_H_

#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// Replaces, among the arguments after the name of `command`, each option that llama.cpp spells
// differently by the command's own, and removes those that change nothing here. Returns a line for
// each that was removed, for standard error; most often "". A usage error, which says what there is
// instead, for an option that means something that Inlay does not do. Words that the command itself
// knows, and all words of commands without a model, stay as they are.
absl::StatusOr<std::string> TranslateSpellings(const CLI::App& command,
                                               std::vector<std::string>& arguments);

// A usage error for the first of these arguments that is an option of llama.cpp but none of the
// command's, or that CLI11 would take apart in another way than a person means it: "-cram 2048" for
// "-c ram". The words of commands without a model are only checked for the latter.
absl::Status RefuseForeignOptions(const CLI::App& command,
                                  const std::vector<std::string>& arguments);

// Other names by which an option's value may be given: llama.cpp's for "--hf-repo", as "-hf".
std::vector<std::string> SpellingsOf(absl::string_view option);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SPELLINGS_H_
