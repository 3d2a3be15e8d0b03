// Sets of Unicode code points, as ascending, disjoint ranges.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_CODE_POINT_SET_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_CODE_POINT_SET_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

inline constexpr uint32_t kLastCodePoint = 0x10FFFF;

// Surrogates may be members; they never appear in a text.
class CodePointSet {
 public:
  CodePointSet() = default;
  // The ranges may overlap and come in any order.
  explicit CodePointSet(std::vector<CodePointRange> ranges);

  static CodePointSet All() { return CodePointSet({{0, kLastCodePoint}}); }

  // Ascending, disjoint and not adjacent.
  absl::Span<const CodePointRange> ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  bool Contains(uint32_t code_point) const;

  CodePointSet Union(const CodePointSet& other) const;
  CodePointSet Without(const CodePointSet& other) const;
  CodePointSet Complement() const;

  bool operator==(const CodePointSet& other) const { return Compare(other) == 0; }
  // Some total order, for maps.
  bool operator<(const CodePointSet& other) const { return Compare(other) < 0; }

 private:
  int Compare(const CodePointSet& other) const;

  std::vector<CodePointRange> ranges_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_CODE_POINT_SET_H_
