#include "gemma_like/grammar/regex_parser.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace inlay {
namespace {

using Kind = RegexNode::Kind;

constexpr size_t kMostRegexRepetitions = 1'000'000;
constexpr size_t kMostBranches = 1000;
// The most nodes of all sequences that AnchorSplitter looks at, copies among them.
constexpr size_t kMostSplitNodes = 1'000'000;
constexpr size_t kManyCodePoints = size_t{1} << 40;

CodePointSet Digits() { return CodePointSet({{'0', '9'}}); }
CodePointSet WordCharacters() {
  return CodePointSet({{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}});
}
// WhiteSpace and LineTerminator of ECMA-262.
CodePointSet Spaces() {
  return CodePointSet({{'\t', '\r'},
                       {' ', ' '},
                       {0xA0, 0xA0},
                       {0x1680, 0x1680},
                       {0x2000, 0x200A},
                       {0x2028, 0x2029},
                       {0x202F, 0x202F},
                       {0x205F, 0x205F},
                       {0x3000, 0x3000},
                       {0xFEFF, 0xFEFF}});
}
CodePointSet LineEnds() { return CodePointSet({{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}); }

RegexNode ClassNode(CodePointSet set) {
  RegexNode node;
  node.kind = Kind::kClass;
  node.set = std::move(set);
  return node;
}

RegexNode NodeOf(Kind kind, std::vector<RegexNode> parts = {}) {
  RegexNode node;
  node.kind = kind;
  node.parts = std::move(parts);
  return node;
}

// As a message shows it: as it was written, since places in it are counted in its bytes.
std::string Quoted(absl::string_view pattern) {
  return absl::StrReplaceAll(QuoteForMessage(pattern), {{"\\\\", "\\"}});
}

// Reads one pattern, once.
class RegexParser {
 public:
  explicit RegexParser(absl::string_view pattern) : pattern_(pattern) {}

  struct Pattern {
    RegexNode node;
    std::vector<RegexNode> ahead, not_ahead;  // as in Regex
  };

  absl::StatusOr<Pattern> Parse() {
    Pattern pattern;
    if (Sees("^(?=") || Sees("^(?!")) {
      INLAY_RETURN_IF_ERROR(LookAhead(&pattern));
    } else {
      INLAY_ASSIGN_OR_RETURN(pattern.node, Choice(0));
    }
    if (at_ < pattern_.size()) return Error("a ')' without a '('");
    return pattern;
  }

 private:
  // A '^', what is looked for after it, and the rest.
  absl::Status LookAhead(Pattern* pattern) {
    Take("^");
    while (Sees("(?=") || Sees("(?!")) {
      std::vector<RegexNode>& looks = Sees("(?=") ? pattern->ahead : pattern->not_ahead;
      at_ += 3;
      INLAY_ASSIGN_OR_RETURN(RegexNode look, Choice(1));
      if (!Take(")")) return Error("a '(' without its ')'");
      looks.push_back(std::move(look));
    }
    INLAY_ASSIGN_OR_RETURN(RegexNode rest, Sequence(0));
    if (Sees("|")) return Error("a '|' outside of groups beside look-ahead");
    std::vector<RegexNode> parts;
    parts.push_back(NodeOf(Kind::kStart));
    parts.push_back(std::move(rest));
    pattern->node = NodeOf(Kind::kSequence, std::move(parts));
    return absl::OkStatus();
  }

  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(
        absl::StrCat("the regular expression ", Quoted(pattern_), " has ", what, " at byte ", at_));
  }
  bool Ends() const { return at_ == pattern_.size(); }
  bool Sees(absl::string_view text) const { return pattern_.substr(at_, text.size()) == text; }
  bool Take(absl::string_view text) {
    if (!Sees(text)) return false;
    at_ += text.size();
    return true;
  }

  absl::StatusOr<RegexNode> Choice(size_t depth) {
    std::vector<RegexNode> options;
    do {
      INLAY_ASSIGN_OR_RETURN(RegexNode option, Sequence(depth));
      options.push_back(std::move(option));
    } while (Take("|"));
    if (options.size() == 1) return std::move(options[0]);
    return NodeOf(Kind::kChoice, std::move(options));
  }

  absl::StatusOr<RegexNode> Sequence(size_t depth) {
    std::vector<RegexNode> parts;
    while (!Ends() && !Sees("|") && !Sees(")")) {
      INLAY_ASSIGN_OR_RETURN(RegexNode part, Atom(depth));
      INLAY_RETURN_IF_ERROR(Quantifier(&part));
      parts.push_back(std::move(part));
    }
    if (parts.size() == 1) return std::move(parts[0]);
    return NodeOf(Kind::kSequence, std::move(parts));
  }

  absl::StatusOr<RegexNode> Atom(size_t depth) {
    if (Take("^")) return NodeOf(Kind::kStart);
    if (Take("$")) return NodeOf(Kind::kEnd);
    if (Take(".")) return ClassNode(LineEnds().Complement());
    if (Sees("(")) return Group(depth);
    if (Take("[")) return Class();
    if (Sees("\\")) {
      INLAY_ASSIGN_OR_RETURN(CodePointSet set, Escape(/*in_class=*/false));
      return ClassNode(std::move(set));
    }
    if (Sees("*") || Sees("+") || Sees("?")) return Error("a quantifier after nothing");
    if (Sees("{")) return Error("a '{' that begins no quantifier (it is written \\{)");
    INLAY_ASSIGN_OR_RETURN(const uint32_t literal, Literal());
    return ClassNode(CodePointSet({{literal, literal}}));
  }

  absl::StatusOr<RegexNode> Group(size_t depth) {
    if (depth == kMostRegexDepth)
      return Error(absl::StrCat("groups inside each other beyond ", kMostRegexDepth));
    for (const absl::string_view look : {"(?=", "(?!"})
      if (Sees(look))
        return Error(absl::StrCat("'", look, "' elsewhere than after a '^' at its start,"));
    for (const absl::string_view look : {"(?<=", "(?<!"})
      if (Sees(look)) return Error(absl::StrCat("'", look, "', which no grammar expresses,"));
    if (Sees("(?P<"))
      return Error("'(?P<', Python's spelling of a named group, which is written (?<name>...),");
    if (SeesFlags())
      return Error("flags in a group, which are not supported (write [Yy]es for (?i)yes),");
    if (Sees("(?") && !Sees("(?:") && !Sees("(?<")) return Error("an unknown kind of group");
    Take("(");
    if (Take("?") && !Take(":")) {
      Take("<");
      const size_t end = pattern_.find('>', at_);
      if (end == absl::string_view::npos || end == at_) return Error("a group's name without end");
      at_ = end + 1;
    }
    INLAY_ASSIGN_OR_RETURN(RegexNode node, Choice(depth + 1));
    if (!Take(")")) return Error("a '(' without its ')'");
    return node;
  }

  // Whether a group begins as (?i) and (?i:...) do.
  bool SeesFlags() const {
    if (!Sees("(?")) return false;
    const size_t end = pattern_.find_first_not_of(
        "-abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", at_ + 2);
    return end != absl::string_view::npos && end > at_ + 2 &&
           (pattern_[end] == ')' || pattern_[end] == ':');
  }

  // Wraps `part` in the quantifier that follows, if one does.
  absl::Status Quantifier(RegexNode* part) {
    size_t least = 0;
    std::optional<size_t> most;
    if (Take("*")) {
    } else if (Take("+")) {
      least = 1;
    } else if (Take("?")) {
      most = 1;
    } else if (Sees("{")) {
      INLAY_RETURN_IF_ERROR(Braces(&least, &most));
    } else {
      return absl::OkStatus();
    }
    if (part->kind == Kind::kStart || part->kind == Kind::kEnd)
      return Error("a quantifier after an anchor");
    Take("?");
    if (Sees("*") || Sees("+") || Sees("?") || Sees("{"))
      return Error("a quantifier after a quantifier");
    RegexNode repeat = NodeOf(Kind::kRepeat);
    repeat.parts.push_back(std::move(*part));
    repeat.least = least;
    repeat.most = most;
    *part = std::move(repeat);
    return absl::OkStatus();
  }

  absl::Status Braces(size_t* least, std::optional<size_t>* most) {
    const size_t start = at_;
    Take("{");
    const std::optional<size_t> low = Count();
    std::optional<size_t> high = low;
    if (low && Take(",")) high = Sees("}") ? std::nullopt : Count();
    const bool without_bound = pattern_[at_ - 1] == ',';
    if (!low || (!high && !without_bound) || !Take("}")) {
      at_ = start;
      return Error("a '{' that begins no quantifier (it is written \\{)");
    }
    if (*low > kMostRegexRepetitions || high.value_or(0) > kMostRegexRepetitions)
      return Error(absl::StrCat("more than ", kMostRegexRepetitions, " repetitions"));
    if (high && *high < *low) return Error("a quantifier whose bounds are in the wrong order");
    *least = *low;
    *most = high;
    return absl::OkStatus();
  }

  std::optional<size_t> Count() {
    const size_t start = at_;
    size_t count = 0;
    for (; !Ends() && absl::ascii_isdigit(pattern_[at_]); ++at_)
      count = std::min(count * 10 + static_cast<size_t>(pattern_[at_] - '0'),
                       kMostRegexRepetitions + 1);
    if (at_ == start) return std::nullopt;
    return count;
  }

  // After '['.
  absl::StatusOr<RegexNode> Class() {
    const bool negated = Take("^");
    std::vector<CodePointRange> ranges;
    const auto add = [&](const CodePointSet& set) {
      ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
    };
    while (!Take("]")) {
      if (Ends()) return Error("a '[' without its ']'");
      INLAY_ASSIGN_OR_RETURN(const CodePointSet first, ClassAtom());
      const bool is_range = Sees("-") && !Sees("-]") && IsOne(first);
      if (!is_range) {
        add(first);
        continue;
      }
      Take("-");
      INLAY_ASSIGN_OR_RETURN(const CodePointSet last, ClassAtom());
      if (!IsOne(last)) {  // [a-\d]: the '-' means itself
        add(first.Union(last).Union(CodePointSet({{'-', '-'}})));
      } else if (last.ranges()[0].first < first.ranges()[0].first) {
        return Error("a range whose bounds are in the wrong order");
      } else {
        ranges.push_back({first.ranges()[0].first, last.ranges()[0].first});
      }
    }
    CodePointSet set(std::move(ranges));
    return ClassNode(negated ? set.Complement() : std::move(set));
  }

  static bool IsOne(const CodePointSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  }

  absl::StatusOr<CodePointSet> ClassAtom() {
    if (Sees("\\")) return Escape(/*in_class=*/true);
    if (Ends()) return Error("a '[' without its ']'");
    INLAY_ASSIGN_OR_RETURN(const uint32_t literal, Literal());
    return CodePointSet({{literal, literal}});
  }

  absl::StatusOr<uint32_t> Literal() {
    const CodePoint literal = DecodeUtf8(pattern_.substr(at_));
    if (!literal.valid) return Error("bytes that are not UTF-8");
    at_ += literal.length;
    return literal.value;
  }

  absl::StatusOr<CodePointSet> Escape(bool in_class) {
    if (at_ + 1 >= pattern_.size()) return Error("a '\\' at its end");
    const char c = pattern_[at_ + 1];
    const auto one = [](uint32_t code_point) { return CodePointSet({{code_point, code_point}}); };
    if (c == 'x' || c == 'u') return CodePointEscape(c);
    if (c == 'c') return ControlEscape();
    if (c == '0' && !(at_ + 2 < pattern_.size() && absl::ascii_isdigit(pattern_[at_ + 2]))) {
      at_ += 2;
      return one(0);
    }
    static constexpr absl::string_view kNames = "tnvfr", kMeant = "\t\n\v\f\r";
    const size_t named = kNames.find(c);
    CodePointSet set;
    if (named != absl::string_view::npos) {
      set = one(static_cast<uint8_t>(kMeant[named]));
    } else if (c == 'd' || c == 'D') {
      set = c == 'd' ? Digits() : Digits().Complement();
    } else if (c == 'w' || c == 'W') {
      set = c == 'w' ? WordCharacters() : WordCharacters().Complement();
    } else if (c == 's' || c == 'S') {
      set = c == 's' ? Spaces() : Spaces().Complement();
    } else if (c == 'b' && in_class) {
      set = one('\b');
    } else if (absl::ascii_isdigit(c) || c == 'k') {
      return Error(absl::StrCat("the back reference '\\", absl::string_view(&c, 1),
                                "', which no grammar expresses,"));
    } else if (absl::ascii_isalpha(c) || c == '_') {
      return Error(absl::StrCat("'\\", absl::string_view(&c, 1), "', which is not supported,"));
    } else {
      ++at_;
      INLAY_ASSIGN_OR_RETURN(const uint32_t literal, Literal());
      return one(literal);
    }
    at_ += 2;
    return set;
  }

  // \cX
  absl::StatusOr<CodePointSet> ControlEscape() {
    if (at_ + 2 >= pattern_.size() || !absl::ascii_isalpha(pattern_[at_ + 2]))
      return Error("a '\\c' without a letter");
    const uint32_t control = static_cast<uint8_t>(pattern_[at_ + 2]) % 32;
    at_ += 3;
    return CodePointSet({{control, control}});
  }

  // \xHH, \uHHHH (two of them for a surrogate pair), \u{H...}
  absl::StatusOr<CodePointSet> CodePointEscape(char kind) {
    const absl::Status error =
        Error(absl::StrCat("an incomplete '\\", absl::string_view(&kind, 1), "'"));
    at_ += 2;
    std::optional<uint32_t> value;
    if (kind == 'u' && Take("{")) {
      const size_t end = pattern_.find('}', at_);
      if (end == absl::string_view::npos || end - at_ > 6) return error;
      value = Hex(end - at_);
      if (!Take("}")) return error;
    } else {
      value = Hex(kind == 'x' ? 2 : 4);
    }
    if (!value || *value > kLastCodePoint) return error;
    if (*value >= 0xD800 && *value < 0xDC00 && Sees("\\u")) {
      const size_t start = at_;
      at_ += 2;
      const std::optional<uint32_t> low = Hex(4);
      if (low && *low >= 0xDC00 && *low < 0xE000)
        value = 0x10000 + ((*value - 0xD800) << 10) + (*low - 0xDC00);
      else
        at_ = start;
    }
    return CodePointSet({{*value, *value}});
  }

  // The value of `digits` digits, at least one.
  std::optional<uint32_t> Hex(size_t digits) {
    if (digits == 0 || digits > pattern_.size() - at_) return std::nullopt;
    uint32_t value = 0;
    for (const char c : pattern_.substr(at_, digits)) {
      if (!absl::ascii_isxdigit(c)) return std::nullopt;
      const int lower = absl::ascii_tolower(c);
      value = value * 16 + static_cast<uint32_t>(lower <= '9' ? lower - '0' : lower - 'a' + 10);
    }
    at_ += digits;
    return value;
  }

  const absl::string_view pattern_;
  size_t at_ = 0;
};

bool HasAnchor(const RegexNode& node) {
  return node.kind == Kind::kStart || node.kind == Kind::kEnd ||
         std::any_of(node.parts.begin(), node.parts.end(), HasAnchor);
}

// How many nodes it has, itself and the ranges of classes among them: what a copy takes.
size_t NodesOf(const RegexNode& node) {
  size_t nodes = 1 + node.set.ranges().size();
  for (const RegexNode& part : node.parts) nodes += NodesOf(part);
  return nodes;
}

// A sequence on its way to become a branch.
struct Items {
  std::vector<RegexNode> items;
  bool from_start = false, to_end = false;
};

// Moves anchors out of sequences to their ends.
class AnchorSplitter {
 public:
  // False if there are too many branches, or anchors inside of repetitions.
  bool Split(RegexNode node, std::vector<RegexBranch>* branches) {
    work_.push_back({{std::move(node)}, false, false});
    while (!work_.empty()) {
      Items sequence = std::move(work_.back());
      work_.pop_back();
      const auto anchor = std::find_if(sequence.items.begin(), sequence.items.end(), HasAnchor);
      if (anchor == sequence.items.end()) {
        if (branches->size() == kMostBranches) return false;
        branches->push_back({NodeOf(Kind::kSequence, std::move(sequence.items)),
                             sequence.from_start, sequence.to_end});
        continue;
      }
      const auto at = static_cast<size_t>(anchor - sequence.items.begin());
      if (!Resolve(std::move(sequence), at)) return false;
    }
    return true;
  }

 private:
  // Replaces item `at`, the first one with an anchor.
  bool Resolve(Items sequence, size_t at) {
    RegexNode item = std::move(sequence.items[at]);
    const auto place = sequence.items.begin() + static_cast<ptrdiff_t>(at);
    switch (item.kind) {
      case Kind::kStart:
        // What comes before must be empty.
        if (!AllNullable(absl::MakeSpan(sequence.items).subspan(0, at))) return true;
        sequence.items.erase(sequence.items.begin(), place + 1);
        sequence.from_start = true;
        return Push(std::move(sequence));
      case Kind::kEnd:
        return ResolveEnd(std::move(sequence), at);
      case Kind::kRepeat:
        if (item.most == size_t{0}) {
          sequence.items.erase(place);
          return Push(std::move(sequence));
        }
        if (item.most != size_t{1}) return false;
        if (item.least == 0) {
          Items without = sequence;
          without.items.erase(without.items.begin() + static_cast<ptrdiff_t>(at));
          if (!Push(std::move(without))) return false;
        }
        *place = std::move(item.parts[0]);
        return Push(std::move(sequence));
      case Kind::kSequence:
        sequence.items.erase(place);
        sequence.items.insert(sequence.items.begin() + static_cast<ptrdiff_t>(at),
                              item.parts.begin(), item.parts.end());
        return Push(std::move(sequence));
      default:
        for (RegexNode& option : item.parts) {
          Items chosen = sequence;
          chosen.items[at] = std::move(option);
          if (!Push(std::move(chosen))) return false;
        }
        return true;
    }
  }

  // Item `at` is '$': what comes after must be empty.
  bool ResolveEnd(Items sequence, size_t at) {
    const auto place = sequence.items.begin() + static_cast<ptrdiff_t>(at);
    const auto next = std::find_if(place + 1, sequence.items.end(), HasAnchor);
    if (next == sequence.items.end()) {
      if (!AllNullable(absl::MakeSpan(sequence.items).subspan(at + 1))) return true;
      sequence.items.erase(place, sequence.items.end());
      sequence.to_end = true;
    } else if (next->kind == Kind::kEnd) {  // says the same once more
      sequence.items.erase(next);
    } else if (next->kind == Kind::kStart) {  // the text is empty
      if (!AllNullable(absl::MakeSpan(sequence.items).subspan(0, at))) return true;
      sequence.items.erase(next);
      sequence.items.erase(sequence.items.begin(), place);
      sequence.from_start = true;
    } else {
      const auto further = static_cast<size_t>(next - sequence.items.begin());
      return Resolve(std::move(sequence), further);
    }
    return Push(std::move(sequence));
  }

  // Whether all of them, which have no anchors, match the empty text.
  static bool AllNullable(absl::Span<const RegexNode> items) {
    return std::all_of(items.begin(), items.end(),
                       [](const RegexNode& item) { return FewestCodePoints(item) == 0; });
  }

  bool Push(Items sequence) {
    for (const RegexNode& item : sequence.items) nodes_ += NodesOf(item);
    work_.push_back(std::move(sequence));
    return ++steps_ < 20 * kMostBranches && nodes_ <= kMostSplitNodes;
  }

  std::vector<Items> work_;
  size_t steps_ = 0;  // sequences that were pushed
  size_t nodes_ = 0;  // of all of them
};

size_t Bounded(size_t count) { return std::min(count, kManyCodePoints); }

}  // namespace

size_t FewestCodePoints(const RegexNode& node) {
  size_t fewest = 0;
  switch (node.kind) {
    case Kind::kClass:
      return 1;
    case Kind::kSequence:
      for (const RegexNode& part : node.parts) fewest = Bounded(fewest + FewestCodePoints(part));
      return fewest;
    case Kind::kChoice:
      fewest = kManyCodePoints;
      for (const RegexNode& part : node.parts) fewest = std::min(fewest, FewestCodePoints(part));
      return fewest;
    case Kind::kRepeat:
      return Bounded(std::min(node.least, kMostRegexRepetitions) * FewestCodePoints(node.parts[0]));
    default:
      return 0;
  }
}

std::optional<size_t> MostCodePoints(const RegexNode& node) {
  size_t most = 0;
  if (node.kind == Kind::kClass) return 1;
  for (const RegexNode& part : node.parts) {
    const std::optional<size_t> of_part = MostCodePoints(part);
    if (node.kind == Kind::kRepeat) {
      if (of_part == size_t{0} || node.most == size_t{0}) return 0;
      if (!of_part || !node.most) return std::nullopt;
      return Bounded(*of_part * *node.most);
    }
    if (!of_part) return std::nullopt;
    most = node.kind == Kind::kSequence ? Bounded(most + *of_part) : std::max(most, *of_part);
  }
  return most;
}

absl::StatusOr<Regex> ParseRegex(absl::string_view pattern) {
  if (pattern.size() > kMostRegexSize)
    return absl::InvalidArgumentError(absl::StrCat("a regular expression has ", pattern.size(),
                                                   " bytes; at most ", kMostRegexSize,
                                                   " are read"));
  INLAY_ASSIGN_OR_RETURN(RegexParser::Pattern parsed, RegexParser(pattern).Parse());
  const auto split = [&](RegexNode node) -> absl::StatusOr<Regex> {
    Regex regex;
    if (!AnchorSplitter().Split(std::move(node), &regex.branches))
      return absl::InvalidArgumentError(
          absl::StrCat("the regular expression ", Quoted(pattern),
                       " has '^' or '$' inside of a repetition, or in too many combinations"));
    return regex;
  };
  INLAY_ASSIGN_OR_RETURN(Regex regex, split(std::move(parsed.node)));
  regex.pattern = std::string(pattern);
  const auto add_looks = [&](std::vector<RegexNode> nodes,
                             std::vector<Regex>* looks) -> absl::Status {
    for (RegexNode& node : nodes) {
      INLAY_ASSIGN_OR_RETURN(Regex look, split(std::move(node)));
      for (RegexBranch& branch : look.branches) branch.from_start = true;
      looks->push_back(std::move(look));
    }
    return absl::OkStatus();
  };
  INLAY_RETURN_IF_ERROR(add_looks(std::move(parsed.ahead), &regex.ahead));
  INLAY_RETURN_IF_ERROR(add_looks(std::move(parsed.not_ahead), &regex.not_ahead));
  return regex;
}

}  // namespace inlay
