// Hash tables that packed files hold.
#ifndef INLAY_IO_TOKENIZER_HASH_TABLE_H_
#define INLAY_IO_TOKENIZER_HASH_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace inlay {

// Mixes the bits of x so that each result bit depends on all of them: the finalizer of MurmurHash3
// (Appleby, public domain).
constexpr uint64_t MixBits(uint64_t x) {
  x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD;
  x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53;
  return x ^ x >> 33;
}

// Open addressing with linear probing, at most half full. Slot is a plain struct with is_free();
// a slot made by Slot() is free. What a slot's key is, and its hash, which a file must not change,
// is the caller's business.
template <class Slot>
class HashTable {
 public:
  HashTable() = default;
  // For at most `keys` keys.
  explicit HashTable(size_t keys) {
    size_t slots = 8;
    while (slots < 2 * keys) slots *= 2;
    slots_.resize(slots);
  }

  // The slot with this hash that `equals` the key; null when there is none. Ends also where a file
  // holds a table without a free slot.
  template <class Equals>
  const Slot* Find(uint64_t hash, const Equals& equals) const {
    const size_t last = slots_.size() - 1;
    for (size_t i = 0; i < slots_.size(); ++i) {
      const Slot& slot = slots_[(hash + i) & last];
      if (slot.is_free()) return nullptr;
      if (equals(slot)) return &slot;
    }
    return nullptr;
  }

  // False, without any change, when the key is there already.
  template <class Equals>
  bool Insert(uint64_t hash, const Slot& slot, const Equals& equals) {
    size_t at = hash & (slots_.size() - 1);
    while (!slots_[at].is_free()) {
      if (equals(slots_[at])) return false;
      at = (at + 1) & (slots_.size() - 1);
      ++collisions_;
    }
    slots_[at] = slot;
    return true;
  }

  // Whether Insert has met so many slots of others as only keys do that were chosen for it: a file
  // that is read for minutes is refused instead.
  bool IsCrowded() const { return collisions_ > kMostPerSlot * slots_.size(); }

  // Whether the number of slots is possible, as it may not be in a file, at most half of them are
  // taken, and a search for what is not there looks at few on average. Only keys that were chosen
  // for it lie so close together that it looks at many; Insert may have met none of them.
  bool IsValid() const {
    const size_t size = slots_.size();
    if (size == 0 || (size & (size - 1)) != 0) return false;
    size_t start = 0;
    while (start < size && !slots_[start].is_free()) ++start;
    size_t taken = 0, run = 0;
    uint64_t looked_at = 0;  // by searches from each slot, beside the free ones that end them
    for (size_t i = 0; i < size; ++i) {
      run = slots_[(start + i) & (size - 1)].is_free() ? 0 : run + 1;
      taken += run > 0;
      looked_at += run;
    }
    return taken <= size / 2 && looked_at <= kMostPerSlot * size;
  }

  template <class Self, class Visit>
  static void VisitArrays(Self& self, Visit& visit) {
    visit(self.slots_);
  }

 private:
  static constexpr uint64_t kMostPerSlot = 64;

  std::vector<Slot> slots_;  // a power of two of them
  uint64_t collisions_ = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_HASH_TABLE_H_
