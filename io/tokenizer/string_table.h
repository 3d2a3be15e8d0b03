// Many strings in two arrays.
#ifndef INLAY_IO_TOKENIZER_STRING_TABLE_H_
#define INLAY_IO_TOKENIZER_STRING_TABLE_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {

class StringTable {
 public:
  // Of all strings together.
  static constexpr size_t kMostBytes = std::numeric_limits<uint32_t>::max();

  // Reserves memory for `count` strings of `bytes` bytes in total.
  void Reserve(size_t count, size_t bytes) {
    ends_.reserve(count);
    bytes_.reserve(bytes);
  }
  // Together they may have kMostBytes bytes.
  void Add(absl::string_view text) {
    bytes_.insert(bytes_.end(), text.begin(), text.end());
    assert(bytes_.size() <= kMostBytes);
    ends_.push_back(static_cast<uint32_t>(bytes_.size()));
  }
  size_t size() const { return ends_.size(); }
  size_t bytes() const { return bytes_.size(); }
  // Valid until the next Add, also when the table is moved.
  absl::string_view operator[](size_t i) const {
    const size_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::string_view(bytes_.data() + begin, ends_[i] - begin);
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
  std::vector<uint32_t> ends_;
  std::vector<char> bytes_;
};

}  // namespace inlay

#endif  // INLAY_IO_TOKENIZER_STRING_TABLE_H_
