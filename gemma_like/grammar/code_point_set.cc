#include "gemma_like/grammar/code_point_set.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"

namespace inlay {

CodePointSet::CodePointSet(std::vector<CodePointRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const CodePointRange& a, const CodePointRange& b) { return a.first < b.first; });
  for (const CodePointRange& range : ranges) {
    if (!ranges_.empty() && range.first <= ranges_.back().last + 1)
      ranges_.back().last = std::max(ranges_.back().last, range.last);
    else
      ranges_.push_back(range);
  }
}

bool CodePointSet::Contains(uint32_t code_point) const {
  const auto after = std::upper_bound(
      ranges_.begin(), ranges_.end(), code_point,
      [](uint32_t value, const CodePointRange& range) { return value < range.first; });
  return after != ranges_.begin() && code_point <= std::prev(after)->last;
}

CodePointSet CodePointSet::Union(const CodePointSet& other) const {
  std::vector<CodePointRange> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return CodePointSet(std::move(ranges));
}

CodePointSet CodePointSet::Without(const CodePointSet& other) const {
  return Complement().Union(other).Complement();
}

CodePointSet CodePointSet::Complement() const {
  std::vector<CodePointRange> ranges;
  uint32_t next = 0;
  for (const CodePointRange& range : ranges_) {
    if (range.first > next) ranges.push_back({next, range.first - 1});
    next = range.last + 1;
  }
  if (next <= kLastCodePoint) ranges.push_back({next, kLastCodePoint});
  return CodePointSet(std::move(ranges));
}

int CodePointSet::Compare(const CodePointSet& other) const {
  const auto pairs = [](absl::Span<const CodePointRange> ranges, size_t i) {
    return std::make_pair(ranges[i].first, ranges[i].last);
  };
  const size_t shared = std::min(ranges_.size(), other.ranges_.size());
  for (size_t i = 0; i < shared; ++i) {
    const auto mine = pairs(ranges_, i), theirs = pairs(other.ranges_, i);
    if (mine != theirs) return mine < theirs ? -1 : 1;
  }
  return static_cast<int>(ranges_.size() > shared) -
         static_cast<int>(other.ranges_.size() > shared);
}

}  // namespace inlay
