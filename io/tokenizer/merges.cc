#include "io/tokenizer/merges.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "io/tokenizer/vocabulary.h"

namespace inlay {

absl::StatusOr<MergeText> SplitMerge(const GgufFile& file, absl::string_view merge, size_t index) {
  // From the second byte on, since the left symbol is not empty.
  const size_t space = merge.find(' ', 1);
  if (space == absl::string_view::npos || space + 1 == merge.size() ||
      merge.size() > Vocabulary::kLongestToken) {
    return absl::InvalidArgumentError(
        absl::StrCat(file.name(), ": merge ", index, " in '", kMergesKey, "' is ",
                     QuoteForMessage(merge), ", not two symbols with a space between, of at most ",
                     Vocabulary::kLongestToken, " bytes"));
  }
  return MergeText{.left = merge.substr(0, space), .right = merge.substr(space + 1)};
}

absl::Status CrowdedTable(absl::string_view file) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": the texts of its tokens or merges have too many equal hashes"));
}

}  // namespace inlay
