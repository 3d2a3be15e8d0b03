// Many strings in two arrays.
#ifndef INLAY_IO_TOKENIZER_STRING_TABLE_H_
#define INLAY_IO_TOKENIZER_STRING_TABLE_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "io/tokenizer/stored_array.h"

namespace inlay {

class StringTable {
 public:
  // Of all strings together.
  static constexpr size_t kMostBytes = std::numeric_limits<uint32_t>::max();

  StringTable() = default;

  size_t size() const { return ends_.size(); }
  size_t bytes() const { return bytes_.size(); }
  // Valid while the table exists, also when it is moved. Of a mapped file that is cut short later
  // zeros may be read where there were ends; no string reaches beyond the bytes even then.
  absl::string_view operator[](size_t i) const {
    const size_t end = ends_[i];
    const size_t begin = i == 0 ? 0 : std::min<size_t>(ends_[i - 1], end);
    return absl::string_view(bytes_.data() + begin, end - begin);
  }

  // Whether the arrays belong together, as they may not when they come from a file.
  bool IsValid() const {
    uint32_t last = 0;
    bool ascending = true;
    for (const uint32_t end : ends_) {
      ascending &= end >= last;
      last = end;
    }
    return ascending && last == bytes_.size();
  }

  template <class Self, class Visit>
  static void VisitArrays(Self& self, Visit& visit) {
    visit(self.ends_);
    visit(self.bytes_);
  }

 private:
  friend class StringTableBuilder;
  StoredArray<uint32_t> ends_;
  StoredArray<char> bytes_;
};

class StringTableBuilder {
 public:
  // Reserves memory for `count` strings of `bytes` bytes in total.
  void Reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  // There may be StringTable::kMostBytes bytes.
  void Add(absl::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    assert(bytes_.size() <= StringTable::kMostBytes);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  StringTable Build() && {
    StringTable table;
    table.ends_ = StoredArray<uint32_t>(std::move(ends_));
    table.bytes_ = StoredArray<char>(std::move(bytes_));
    return table;
  }

 private:
  std::vector<uint32_t> ends_;
  std::vector<char> bytes_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_STRING_TABLE_H_
