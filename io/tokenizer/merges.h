// The list of merges of a byte-pair vocabulary: pairs of symbols, best first.
#ifndef INLAY_IO_TOKENIZER_MERGES_H_
#define INLAY_IO_TOKENIZER_MERGES_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/gguf/gguf.h"

namespace inlay {

inline constexpr absl::string_view kMergesKey = "tokenizer.ggml.merges";

// The two sides of a merge; neither is empty.
struct MergeText {
  absl::string_view left;
  absl::string_view right;
};

// Splits merge number `index` of the file's list. InvalidArgument when it is not two symbols with a
// space between, or longer than Vocabulary::kLongestToken.
absl::StatusOr<MergeText> SplitMerge(const GgufFile& file, absl::string_view merge, size_t index);

// For a table of merges by the ids of their sides.
inline uint64_t PairKey(int32_t left, int32_t right) {
  return (static_cast<uint64_t>(left) << 32) | static_cast<uint32_t>(right);
}

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_MERGES_H_
