// Byte-pair merging: joins neighbouring symbols, best pair first, in O(n log n).
#ifndef INLAY_IO_TOKENIZER_SYMBOL_MERGER_H_
#define INLAY_IO_TOKENIZER_SYMBOL_MERGER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace inlay {

// A stretch of the text being encoded.
struct Symbol {
  uint32_t begin;   // bytes from the start of the text
  uint32_t length;  // bytes; 0 once it has been joined to its left neighbour
  int32_t id;       // from Append or the lookup; -1: none
  int32_t previous;
  int32_t next;  // -1 at the ends
};

// The result of joining two symbols: the pair with the least rank is joined first.
struct Merge {
  uint32_t rank;
  int32_t id;
};

// Sennrich et al. 2016, "Neural Machine Translation of Rare Words with Subword Units", algorithm
// 1, with a heap of candidate pairs instead of a search per step. Reusable, so that one text's
// many short words cost no allocation each; not for use by two threads at once.
class SymbolMerger {
 public:
  // Removes all symbols and reserves memory for `symbols` new ones.
  void Clear(size_t symbols) {
    symbols_.clear();
    symbols_.reserve(symbols);
  }

  void Append(uint32_t begin, uint32_t length, int32_t id) {
    const int32_t index = static_cast<int32_t>(symbols_.size());
    if (index > 0) symbols_.back().next = index;
    symbols_.push_back({begin, length, id, index - 1, -1});
  }

  // Joins until no pair can be joined. `lookup(left, right)` gives an std::optional<Merge>; of
  // pairs of equal rank the leftmost is joined first.
  template <typename Lookup>
  void Run(const Lookup& lookup) {
    candidates_.clear();
    candidates_.reserve(symbols_.size());
    for (size_t i = 0; i + 1 < symbols_.size(); ++i) Consider(static_cast<int32_t>(i), lookup);
    std::make_heap(candidates_.begin(), candidates_.end(), Later);
    while (!candidates_.empty()) {
      std::pop_heap(candidates_.begin(), candidates_.end(), Later);
      const Candidate best = candidates_.back();
      candidates_.pop_back();
      Symbol& left = symbols_[best.left];
      // A symbol only grows to the right, so a candidate is still valid if and only if both symbols
      // still exist and their total length is the same.
      if (left.length == 0 || left.next < 0) continue;
      Symbol& right = symbols_[left.next];
      if (left.length + right.length != best.length) continue;
      left.length = best.length;
      left.id = best.id;
      left.next = right.next;
      right.length = 0;
      if (left.next >= 0) symbols_[left.next].previous = best.left;
      if (left.previous >= 0) ConsiderLater(left.previous, lookup);
      if (left.next >= 0) ConsiderLater(best.left, lookup);
    }
  }

  // Calls `use(symbol)` for each remaining symbol, from left to right.
  template <typename Use>
  void ForEach(const Use& use) const {
    if (symbols_.empty()) return;
    for (int32_t i = 0; i >= 0; i = symbols_[i].next) use(symbols_[i]);
  }

 private:
  struct Candidate {
    uint32_t rank;
    int32_t left;
    uint32_t length;
    int32_t id;
  };

  static bool Later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  }

  template <typename Lookup>
  bool Consider(int32_t left, const Lookup& lookup) {
    const Symbol& a = symbols_[left];
    const Symbol& b = symbols_[a.next];
    const std::optional<Merge> merge = lookup(a, b);
    if (!merge.has_value()) return false;
    candidates_.push_back({merge->rank, left, a.length + b.length, merge->id});
    return true;
  }

  template <typename Lookup>
  void ConsiderLater(int32_t left, const Lookup& lookup) {
    if (Consider(left, lookup)) std::push_heap(candidates_.begin(), candidates_.end(), Later);
  }

  std::vector<Symbol> symbols_;
  std::vector<Candidate> candidates_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_SYMBOL_MERGER_H_
