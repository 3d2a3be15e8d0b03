// Finds the elements of a list by their names, with 6 bytes for each element.
#ifndef INLAY_IO_GGUF_NAME_INDEX_H_
#define INLAY_IO_GGUF_NAME_INDEX_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"

namespace inlay {

// Open addressing with linear probing, at most two thirds full, over positions in a list that the
// caller keeps: `name_of(i)` gives the name of its element i, always the same. The index stores no
// names, so that it stays small compared with a file that consists mainly of names.
class NameIndex {
 public:
  static constexpr uint64_t kMostNames = uint64_t{1} << 31;

  // Empties the index and reserves memory for `names` names, at most kMostNames.
  void Reset(size_t names) {
    assert(names <= kMostNames);
    slots_.assign(names + names / 2 + 1, kFree);
  }

  // False, without any change, when an element of this name is there already.
  template <typename NameOf>
  bool Insert(size_t position, const NameOf& name_of) {
    uint32_t& slot = slots_[Probe(name_of(position), name_of)];
    if (slot != kFree) return false;
    slot = static_cast<uint32_t>(position);
    return true;
  }

  template <typename NameOf>
  std::optional<size_t> Find(absl::string_view name, const NameOf& name_of) const {
    if (slots_.empty()) return std::nullopt;
    const uint32_t position = slots_[Probe(name, name_of)];
    return position == kFree ? std::nullopt : std::optional<size_t>(position);
  }

 private:
  static constexpr uint32_t kFree = 0xFFFFFFFF;

  // Where the name is, or where it would go.
  template <typename NameOf>
  size_t Probe(absl::string_view name, const NameOf& name_of) const {
    const uint64_t hash = absl::Hash<absl::string_view>()(name) >> 32;
    size_t at = static_cast<size_t>(hash * slots_.size() >> 32);
    while (slots_[at] != kFree && name_of(slots_[at]) != name) {
      if (++at == slots_.size()) at = 0;
    }
    return at;
  }

  std::vector<uint32_t> slots_;  // positions
};

}  // namespace inlay

#endif  // INLAY_IO_GGUF_NAME_INDEX_H_
