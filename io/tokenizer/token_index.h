// Tokens by their text.
#ifndef INLAY_IO_TOKENIZER_TOKEN_INDEX_H_
#define INLAY_IO_TOKENIZER_TOKEN_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/strings/string_view.h"
#include "io/tokenizer/hash_table.h"
#include "io/tokenizer/string_table.h"

namespace inlay {

// Of some tokens of a table of texts, which each call must be given.
class TokenIndex {
 public:
  TokenIndex() = default;
  // For at most `tokens` tokens.
  explicit TokenIndex(size_t tokens) : table_(tokens) {}

  // Adds token `id`, unless one of the same text is there already.
  void Insert(const StringTable& texts, int32_t id) {
    const absl::string_view text = texts[static_cast<size_t>(id)];
    const uint64_t hash = HashOf(text);
    table_.Insert(hash, {TagOf(hash), id}, Equals{texts, text, TagOf(hash)});
  }
  std::optional<int32_t> Find(const StringTable& texts, absl::string_view text) const {
    const uint64_t hash = HashOf(text);
    const Slot* const slot = table_.Find(hash, Equals{texts, text, TagOf(hash)});
    return slot == nullptr ? std::nullopt : std::optional<int32_t>(slot->id);
  }

  bool IsCrowded() const { return table_.IsCrowded(); }
  bool IsValid() const { return table_.IsValid(); }
  template <class Self, class Visit>
  static void VisitArrays(Self& self, Visit& visit) {
    HashTable<Slot>::VisitArrays(self.table_, visit);
  }

 private:
  struct Slot {
    uint32_t tag = 0;  // some bits of the hash, so that other texts are seldom compared
    int32_t id = -1;
    bool is_free() const { return id < 0; }
  };
  struct Equals {
    const StringTable& texts;
    absl::string_view text;
    uint32_t tag;
    // An id of a damaged file may be none.
    bool operator()(const Slot& slot) const {
      const size_t id = static_cast<size_t>(slot.id);
      return slot.tag == tag && id < texts.size() && texts[id] == text;
    }
  };

  static uint32_t TagOf(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }
  // Packed files depend on it.
  static uint64_t HashOf(absl::string_view text) {
    uint64_t hash = text.size();
    const char* p = text.data();
    size_t left = text.size();
    for (; left > 8; left -= 8, p += 8) hash = MixBits(hash ^ Load<uint64_t>(p));
    uint64_t last = 0;  // all of the last bytes, some of them twice
    if (left >= 4) {
      last = uint64_t{Load<uint32_t>(p)} << 32 | Load<uint32_t>(p + left - 4);
    } else if (left > 0) {
      last =
          Load<uint8_t>(p) | Load<uint8_t>(p + left / 2) << 8 | Load<uint8_t>(p + left - 1) << 16;
    }
    return MixBits(hash ^ last);
  }
  template <class T>
  static T Load(const char* p) {
    T value;
    std::memcpy(&value, p, sizeof(value));
    return value;
  }

  HashTable<Slot> table_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_TOKEN_INDEX_H_
