// The list of merges of a byte-pair vocabulary: pairs of symbols, best first.
#ifndef INLAY_IO_TOKENIZER_MERGES_H_
#define INLAY_IO_TOKENIZER_MERGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/hash_table.h"
#include "io/tokenizer/symbol_merger.h"

namespace inlay {

inline constexpr absl::string_view kMergesKey = "tokenizer.ggml.merges";

// The two sides of a merge; neither is empty.
struct MergeText {
  absl::string_view left;
  absl::string_view right;
};

// The file's list of merges. InvalidArgument when one is not two symbols with a space between, or
// longer than Vocabulary::kLongestToken.
absl::StatusOr<GgufStrings> GetMerges(const GgufFile& file);

// Splits one of these.
MergeText SplitMerge(absl::string_view merge);

// Why a file is refused whose hash table IsCrowded or not IsValid.
absl::Status CrowdedTable(absl::string_view file);

// Merges by the ids of their sides.
class MergeTable {
 public:
  MergeTable() = default;
  // For at most `merges` merges.
  explicit MergeTable(size_t merges) : table_(merges) {}

  // Adds a merge of symbols that are not negative; the first of equal pairs counts.
  void Insert(int32_t left, int32_t right, const Merge& merge) {
    table_.Insert(HashOf(left, right), {left, right, merge.rank, merge.id}, Equals{left, right});
  }
  std::optional<Merge> Find(int32_t left, int32_t right) const {
    const Slot* const slot = table_.Find(HashOf(left, right), Equals{left, right});
    return slot == nullptr ? std::nullopt : std::optional<Merge>({slot->rank, slot->joined});
  }

  bool IsCrowded() const { return table_.IsCrowded(); }
  bool IsValid() const { return table_.IsValid(); }
  template <class Self, class Visit>
  static void VisitArrays(Self& self, Visit& visit) {
    HashTable<Slot>::VisitArrays(self.table_, visit);
  }

 private:
  struct Slot {
    int32_t left = -1;
    int32_t right = -1;
    uint32_t rank = 0;
    int32_t joined = -1;
    bool is_free() const { return left < 0; }
  };
  struct Equals {
    int32_t left;
    int32_t right;
    bool operator()(const Slot& slot) const { return slot.left == left && slot.right == right; }
  };

  // Packed files depend on it.
  static uint64_t HashOf(int32_t left, int32_t right) {
    return MixBits(static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right));
  }

  HashTable<Slot> table_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_MERGES_H_
