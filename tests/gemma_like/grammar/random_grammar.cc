#include "tests/gemma_like/grammar/random_grammar.h"

#include <algorithm>
#include <iterator>
#include <optional>

#include "base/utf8.h"

namespace inlay {
namespace {

using Kind = RandomGrammar::Kind;

constexpr const char* kTexts[] = {"a",        "b", "ab", "ba", "\"", "\\",
                                  "\xC3\xA9", "{", "1",  ", ", "aab"};
constexpr CodePointRange kRanges[] = {{'a', 'b'},   {'b', 0xE9},      {0x20, 0x10FFFF},
                                      {0xE9, 0xEA}, {0xD000, 0xF000}, {0x10000, 0x10FFFF}};
constexpr const char* kNames[] = {"a", "ab", "b", "\"", "\xC3\xA9", "", "a\n"};

// Whether the bytes, fewer than a character's, begin one of the range.
bool BeginsCodePoint(absl::string_view bytes, const CodePointRange& range) {
  const uint8_t lead = static_cast<uint8_t>(bytes[0]);
  const size_t size = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() >= size) return false;
  static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t low = lead & (0xFF >> (size + 1));
  for (size_t i = 1; i < bytes.size(); ++i) {
    if ((bytes[i] & 0xC0) != 0x80) return false;
    low = low << 6 | (bytes[i] & 0x3F);
  }
  const size_t missing = 6 * (size - bytes.size());
  const uint32_t high = std::min<uint32_t>((low + 1) << missing, 0x110000) - 1;
  const uint32_t first = std::max({low << missing, kLeast[size], range.first});
  const uint32_t last = std::min(high, range.last);
  return first <= last && (first < 0xD800 || last > 0xDFFF);
}

// Whether no text of it is empty, as far as is seen at once.
bool IsNeverEmpty(const RandomGrammar::Expr& expr) {
  using Kind = RandomGrammar::Kind;
  return expr.kind == Kind::kBytes || (expr.kind == Kind::kText && !expr.text.empty()) ||
         expr.kind == Kind::kCodePoint || expr.kind == Kind::kControl || expr.kind == Kind::kObject;
}

class Maker {
 public:
  Maker(const UpTo& up_to, bool objects) : up_to_(up_to), objects_(objects) {}

  RandomGrammar Make() && {
    made_.rules.resize(1 + up_to_(3));
    for (rule_ = 0; rule_ < made_.rules.size(); ++rule_) made_.rules[rule_] = AddExpr(0);
    return std::move(made_);
  }

 private:
  size_t Pick(size_t count) { return up_to_(count - 1); }

  size_t AddExpr(size_t depth) {
    // Leaves first, then what has parts, then what the reference cannot read.
    static constexpr Kind kKinds[] = {
        Kind::kEmpty,    Kind::kNothing,  Kind::kBytes,  Kind::kBytes,  Kind::kCodePoint,
        Kind::kText,     Kind::kText,     Kind::kText,   Kind::kCall,   Kind::kCall,
        Kind::kSequence, Kind::kSequence, Kind::kChoice, Kind::kRepeat, Kind::kRepeat,
        Kind::kControl,  Kind::kObject,   Kind::kObject};
    constexpr size_t kLeaves = 10, kReadable = 15;
    const size_t first = depth == 0 ? kLeaves : 0;
    const size_t last = depth > 3 ? kLeaves : objects_ ? std::size(kKinds) : kReadable;
    RandomGrammar::Expr expr;
    expr.kind = kKinds[first + Pick(last - first)];
    switch (expr.kind) {
      case Kind::kText:
        expr.text = kTexts[Pick(std::size(kTexts))];
        break;
      case Kind::kBytes:
        for (size_t n = up_to_(3); n > 0; --n) expr.text += "ab1\"\xFF"[Pick(5)];
        break;
      case Kind::kCodePoint:
        expr.ranges = {kRanges[Pick(std::size(kRanges))]};
        break;
      case Kind::kSequence:
      case Kind::kChoice:
        // None of them now and then.
        for (size_t n = up_to_(20) == 0 ? 0 : 1 + up_to_(2); n > 0; --n) {
          expr.parts.push_back(AddExpr(depth + 1));
        }
        break;
      case Kind::kRepeat:
        expr.parts = {AddExpr(depth + 1)};
        expr.least = up_to_(2);
        expr.most = up_to_(RandomGrammar::kMany + 1);
        break;
      case Kind::kCall:
        return AddCall();
      case Kind::kControl:
        expr.rule = Pick(3);
        break;
      case Kind::kObject:
        expr.object = AddObject();
        break;
      default:
        break;
    }
    return Add(std::move(expr));
  }

  size_t Add(RandomGrammar::Expr expr) {
    made_.exprs.push_back(std::move(expr));
    return made_.exprs.size() - 1;
  }

  // Of a later rule, or after a text, since most grammars would be left-recursive otherwise.
  size_t AddCall() {
    const size_t later = made_.rules.size() - rule_ - 1;
    if (later > 0 && up_to_(2) > 0)
      return Add({.kind = Kind::kCall, .rule = rule_ + 1 + Pick(later)});
    const size_t text = Add({.kind = Kind::kText, .text = kTexts[Pick(std::size(kTexts))]});
    const size_t call = Add({.kind = Kind::kCall, .rule = Pick(made_.rules.size())});
    return Add({.kind = Kind::kSequence, .parts = {text, call}});
  }

  GrammarObject AddObject() {
    GrammarObject object;
    for (const char* name : kNames) {
      if (up_to_(2) > 0) continue;
      object.members.push_back(
          {name, static_cast<int32_t>(Pick(made_.rules.size())), up_to_(1) > 0});
    }
    if (up_to_(1) > 0) object.other = static_cast<int32_t>(Pick(made_.rules.size()));
    object.least = up_to_(2);
    if (up_to_(1) > 0) object.most = up_to_(4);
    object.in_order = up_to_(1) > 0;
    object.space = up_to_(1) > 0 ? JsonSpace::kAny : JsonSpace::kSerialized;
    return object;
  }

  const UpTo& up_to_;
  const bool objects_;
  size_t rule_ = 0;  // that is being made
  RandomGrammar made_;
};

}  // namespace

RandomGrammar RandomGrammar::Make(const UpTo& up_to, bool objects) {
  return Maker(up_to, objects).Make();
}

absl::StatusOr<std::shared_ptr<const Grammar>> RandomGrammar::Build() const {
  GrammarBuilder builder;
  std::vector<GrammarBuilder::Rule> ids;
  for (size_t i = 0; i < rules.size(); ++i) ids.push_back(builder.Declare(std::string(1, 'A' + i)));
  std::vector<GrammarBuilder::Expr> made;  // parts come before what they are part of
  for (const Expr& expr : exprs) {
    std::vector<GrammarBuilder::Expr> parts;
    for (const size_t part : expr.parts) parts.push_back(made[part]);
    ByteSet set;
    for (const char c : expr.text) set.set(static_cast<uint8_t>(c));
    std::optional<size_t> most;
    if (expr.most <= kMany) most = expr.most;
    switch (expr.kind) {
      case Kind::kEmpty:
        made.push_back(builder.Empty());
        break;
      case Kind::kNothing:
        made.push_back(builder.Nothing());
        break;
      case Kind::kBytes:
        made.push_back(builder.Byte(set));
        break;
      case Kind::kText:
        made.push_back(builder.Text(expr.text));
        break;
      case Kind::kCodePoint:
        made.push_back(builder.CodePoint(expr.ranges));
        break;
      case Kind::kSequence:
        made.push_back(builder.Sequence(parts));
        break;
      case Kind::kChoice:
        made.push_back(builder.Choice(parts));
        break;
      case Kind::kRepeat:
        if (made.size() % 2 == 0 && IsNeverEmpty(exprs[expr.parts[0]])) {
          const auto part = builder.Declare("counted");
          builder.Define(part, parts[0]);
          made.push_back(builder.Counted(part, expr.least, most));
        } else {
          made.push_back(builder.Repeat(parts[0], expr.least, most));
        }
        break;
      case Kind::kCall:
        made.push_back(builder.Call(ids[expr.rule]));
        break;
      case Kind::kControl:
        made.push_back(builder.ControlToken(static_cast<int32_t>(expr.rule)));
        break;
      case Kind::kObject:
        made.push_back(builder.AnyObject(expr.object));
        break;
    }
  }
  for (size_t i = 0; i < rules.size(); ++i) builder.Define(ids[i], made[rules[i]]);
  return std::move(builder).Build(ids[0]);
}

ReferenceReader::ReferenceReader(const RandomGrammar& grammar, absl::string_view text)
    : grammar_(grammar), text_(text), productive_(grammar.exprs.size()) {
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = 0; i < productive_.size(); ++i) {
      if (productive_[i] || !FindProductive(i)) continue;
      productive_[i] = changed = true;
    }
  }
}

bool ReferenceReader::FindProductive(size_t id) const {
  const RandomGrammar::Expr& expr = grammar_.exprs[id];
  const auto productive = [&](size_t part) { return productive_[part]; };
  switch (expr.kind) {
    case Kind::kNothing:
      return false;
    case Kind::kBytes:
      return expr.text.find_first_not_of('\xFF') != std::string::npos;
    case Kind::kSequence:
      return std::all_of(expr.parts.begin(), expr.parts.end(), productive);
    case Kind::kChoice:
      return std::any_of(expr.parts.begin(), expr.parts.end(), productive);
    case Kind::kRepeat:
      return expr.least <= expr.most && (expr.least == 0 || productive(expr.parts[0]));
    case Kind::kCall:
      return productive(grammar_.rules[expr.rule]);
    default:
      return true;
  }
}

const ReferenceReader::Positions& ReferenceReader::Ends(size_t expr, size_t from) {
  const auto at = ends_.find({expr, from});
  if (at != ends_.end()) return at->second;
  Positions ends = FindEnds(expr, from);
  return ends_[{expr, from}] = std::move(ends);
}

ReferenceReader::Positions ReferenceReader::FindEnds(size_t id, size_t from) {
  const RandomGrammar::Expr& expr = grammar_.exprs[id];
  const absl::string_view rest = absl::string_view(text_).substr(from);
  Positions at = {from}, found;
  const auto then = [&](size_t part) {
    Positions next;
    for (const size_t p : at) next.insert(Ends(part, p).begin(), Ends(part, p).end());
    return next;
  };
  switch (expr.kind) {
    case Kind::kEmpty:
      return at;
    case Kind::kBytes:
      if (!rest.empty() && rest[0] != '\xFF' && expr.text.find(rest[0]) != std::string::npos) {
        return {from + 1};
      }
      return {};
    case Kind::kText:
      return rest.substr(0, expr.text.size()) == expr.text ? Positions{from + expr.text.size()}
                                                           : Positions{};
    case Kind::kCodePoint: {
      if (rest.empty()) return {};
      const CodePoint c = DecodeUtf8(rest);
      const bool in = c.valid && c.value >= expr.ranges[0].first && c.value <= expr.ranges[0].last;
      return in ? Positions{from + c.length} : Positions{};
    }
    case Kind::kSequence:
      for (const size_t part : expr.parts) at = then(part);
      return at;
    case Kind::kChoice:
      for (const size_t part : expr.parts) found.merge(Positions(Ends(part, from)));
      return found;
    case Kind::kRepeat: {
      if (expr.least > expr.most) return {};
      const size_t most = expr.most > RandomGrammar::kMany ? expr.least + text_.size() : expr.most;
      for (size_t i = 0; i <= most; ++i) {
        if (i >= expr.least) found.insert(at.begin(), at.end());
        if (i < most) at = then(expr.parts[0]);
      }
      return found;
    }
    case Kind::kCall:
      return Ends(grammar_.rules[expr.rule], from);
    default:
      return {};
  }
}

bool ReferenceReader::Covers(size_t id, size_t from) {
  if (!productive_[id]) return false;
  if (from == text_.size() || Ends(id, from).count(text_.size()) > 0) return true;
  const RandomGrammar::Expr& expr = grammar_.exprs[id];
  const std::string rest = text_.substr(from);
  switch (expr.kind) {
    case Kind::kText:
      return expr.text.substr(0, rest.size()) == rest;
    case Kind::kCodePoint:
      return BeginsCodePoint(rest, expr.ranges[0]);
    case Kind::kSequence:
      return CoversParts(expr.parts, from);
    case Kind::kChoice:
      return std::any_of(expr.parts.begin(), expr.parts.end(),
                         [&](size_t part) { return Covers(part, from); });
    case Kind::kRepeat: {
      const size_t most = expr.most > RandomGrammar::kMany ? expr.least + text_.size() : expr.most;
      return CoversParts(std::vector<size_t>(most, expr.parts[0]), from);
    }
    case Kind::kCall:
      return Covers(grammar_.rules[expr.rule], from);
    default:
      return false;
  }
}

// Within one of the parts.
bool ReferenceReader::CoversParts(const std::vector<size_t>& parts, size_t from) {
  Positions at = {from};
  for (const size_t part : parts) {
    Positions next;
    for (const size_t p : at) {
      if (Covers(part, p)) return true;
      next.insert(Ends(part, p).begin(), Ends(part, p).end());
    }
    at = std::move(next);
  }
  return false;
}

}  // namespace inlay
