// Lists of numbers, each stored once and known by an id.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_WORD_LISTS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_WORD_LISTS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/xxh64.h"

namespace inlay {

// Open addressing with linear probing, at most half full.
class WordLists {
 public:
  // The id of the list: 0, 1, 2 and so on for new ones. `words` may be a list of this object.
  uint32_t Intern(absl::Span<const uint32_t> words) {
    if (2 * (size() + 1) > slots_.size()) Grow();
    const auto hash = static_cast<uint32_t>(Xxh64Of(words.data(), words.size() * sizeof(words[0])));
    uint32_t& slot = slots_[Find(words, hash)];
    if (slot != 0) return slot - 1;
    const size_t begin = words_.size();
    words_.resize(begin + words.size());
    // If these were our own words, resize has moved them; but then the list was there already.
    std::copy(words.begin(), words.end(), words_.begin() + begin);
    ends_.push_back(words_.size());
    hashes_.push_back(hash);
    slot = static_cast<uint32_t>(ends_.size());
    return slot - 1;
  }

  // Valid until the next Intern.
  absl::Span<const uint32_t> operator[](uint32_t id) const {
    const size_t begin = id == 0 ? 0 : ends_[id - 1];
    return absl::MakeConstSpan(words_).subspan(begin, ends_[id] - begin);
  }

  size_t size() const { return ends_.size(); }
  size_t bytes() const {
    return words_.capacity() * sizeof(words_[0]) + ends_.capacity() * sizeof(ends_[0]) +
           hashes_.capacity() * sizeof(hashes_[0]) + slots_.capacity() * sizeof(slots_[0]);
  }

 private:
  bool Is(uint32_t id, absl::Span<const uint32_t> words, uint32_t hash) const {
    return hashes_[id] == hash && (*this)[id] == words;
  }

  // Where the list is, or would go.
  size_t Find(absl::Span<const uint32_t> words, uint32_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at] != 0 && !Is(slots_[at] - 1, words, hash)) at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  void Grow() {
    slots_.assign(slots_.empty() ? 16 : 2 * slots_.size(), 0);
    for (uint32_t id = 0; id < size(); ++id) {
      size_t at = hashes_[id] & (slots_.size() - 1);
      while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = id + 1;
    }
  }

  std::vector<uint32_t> words_;
  std::vector<size_t> ends_;      // by id, in words_
  std::vector<uint32_t> hashes_;  // by id
  std::vector<uint32_t> slots_;   // id + 1; 0: free
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_WORD_LISTS_H_
