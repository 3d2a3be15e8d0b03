// Reads regular expressions in the syntax of ECMA-262 with its flag "u".
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_REGEX_PARSER_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_REGEX_PARSER_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/code_point_set.h"

namespace inlay {

// A part of a regular expression. Groups leave no trace, since nothing is captured, and neither
// does laziness, since it does not change which texts match.
struct RegexNode {
  enum class Kind { kClass, kSequence, kChoice, kRepeat, kStart, kEnd };

  Kind kind = Kind::kSequence;
  CodePointSet set;              // kClass: one code point of it
  std::vector<RegexNode> parts;  // kSequence, kChoice; kRepeat: one
  size_t least = 0;              // kRepeat
  std::optional<size_t> most;    // kRepeat; none: any number
};

// One way to match: `core`, which has neither kStart nor kEnd, somewhere in the text.
struct RegexBranch {
  RegexNode core;
  bool from_start = false;  // only where the text starts
  bool to_end = false;      // only where it ends
};

// A text matches if one of the branches does, each of `ahead` matches and none of `not_ahead` does.
struct Regex {
  std::string pattern;  // as it was written
  std::vector<RegexBranch> branches;
  // What is looked for where the text starts. These have no look-ahead of their own.
  std::vector<Regex> ahead, not_ahead;

  bool looks_ahead() const { return !ahead.empty() || !not_ahead.empty(); }
};

// The most bytes of a pattern, and the most groups inside each other.
inline constexpr size_t kMostRegexSize = 1 << 16;
inline constexpr size_t kMostRegexDepth = 60;

// InvalidArgument, with the pattern and the place in it, for what is no regular expression and for
// what no grammar can express or this reader does not know: back references, look-ahead elsewhere
// than right after a '^' that starts the pattern, look-behind, \b, \B, \p, anchors inside of
// repetitions.
absl::StatusOr<Regex> ParseRegex(absl::string_view pattern);

// The fewest code points that `node` matches, and the most; none: without bound. Both stop at
// 2^40.
size_t FewestCodePoints(const RegexNode& node);
std::optional<size_t> MostCodePoints(const RegexNode& node);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_REGEX_PARSER_H_
