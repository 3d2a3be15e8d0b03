#include "io/tokenizer/merges.h"

#include <cassert>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/tokenizer/vocabulary.h"

namespace inlay {

namespace {

// From the second byte on, since the left symbol is not empty.
size_t FindSpace(absl::string_view merge) { return merge.find(' ', 1); }

}  // namespace

// All are looked at before memory is allocated for any, by their number.
absl::StatusOr<GgufStrings> GetMerges(const GgufFile& file) {
  INLAY_ASSIGN_OR_RETURN(const GgufStrings merges, file.GetStrings(kMergesKey));
  size_t index = 0;
  for (const absl::string_view merge : merges) {
    const size_t space = FindSpace(merge);
    if (space == absl::string_view::npos || space + 1 == merge.size() ||
        merge.size() > Vocabulary::kLongestToken) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.name(), ": merge ", index, " in '", kMergesKey, "' is ", QuoteForMessage(merge),
          ", not two symbols with a space between, of at most ", Vocabulary::kLongestToken,
          " bytes"));
    }
    ++index;
  }
  return merges;
}

MergeText SplitMerge(absl::string_view merge) {
  const size_t space = FindSpace(merge);
  assert(space != absl::string_view::npos);
  return {.left = merge.substr(0, space), .right = merge.substr(space + 1)};
}

absl::Status CrowdedTable(absl::string_view file) {
  return absl::InvalidArgumentError(
      absl::StrCat(file, ": the texts of its tokens or merges have too many equal hashes"));
}

}  // namespace inlay
