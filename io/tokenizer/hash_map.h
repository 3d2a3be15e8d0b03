// A hash map that stays valid when it runs out of memory: absl's tables, whose slots are similar,
// are left broken when the allocation for their growth fails.
#ifndef INLAY_IO_TOKENIZER_HASH_MAP_H_
#define INLAY_IO_TOKENIZER_HASH_MAP_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"

namespace inlay {

// Open addressing with linear probing, at most half full. Keys are only added. Key and Value are
// small and trivially copied.
template <class Key, class Value>
class HashMap {
 public:
  // Reserves memory for `keys` keys; std::bad_alloc, here and in Insert, leaves the map unchanged.
  void Reserve(size_t keys) {
    size_t slots = 8;
    while (slots < 2 * keys) slots *= 2;
    if (slots <= slots_.size()) return;
    HashMap larger;
    larger.slots_.resize(slots);
    for (const Slot& slot : slots_) {
      if (slot.tag != 0) larger.Insert(slot.key, slot.value);
    }
    *this = std::move(larger);
  }

  // False, without any change, when the key is there already.
  bool Insert(const Key& key, const Value& value) {
    Reserve(size_ + 1);
    const size_t hash = absl::Hash<Key>()(key);
    Slot& slot = slots_[Probe(key, hash)];
    if (slot.tag != 0) return false;
    slot = {key, value, Tag(hash)};
    ++size_;
    return true;
  }

  // The value of `key`; null when it has none. Valid until the next Insert.
  const Value* Find(const Key& key) const {
    if (slots_.empty()) return nullptr;
    const Slot& slot = slots_[Probe(key, absl::Hash<Key>()(key))];
    return slot.tag == 0 ? nullptr : &slot.value;
  }

 private:
  struct Slot {
    Key key = {};
    Value value = {};
    uint32_t tag = 0;  // some bits of the hash, so that other keys are seldom compared; 0: free
  };

  static uint32_t Tag(size_t hash) { return static_cast<uint32_t>(hash >> 32) | 1; }

  // Where the key is, or where it would go.
  size_t Probe(const Key& key, size_t hash) const {
    size_t at = hash & (slots_.size() - 1);
    while (slots_[at].tag != 0 && !(slots_[at].tag == Tag(hash) && slots_[at].key == key))
      at = (at + 1) & (slots_.size() - 1);
    return at;
  }

  std::vector<Slot> slots_;  // a power of two of them
  size_t size_ = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_HASH_MAP_H_
