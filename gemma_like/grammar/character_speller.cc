#include "gemma_like/grammar/character_speller.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

constexpr uint32_t kFirstSurrogate = 0xD800, kFirstLowSurrogate = 0xDC00, kLastSurrogate = 0xDFFF;
constexpr uint32_t kFirstOfPairs = 0x10000;

// What stands for itself in a JSON string.
CodePointSet RawInJson() {
  return CodePointSet({{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}).Complement();
}

// A hexadecimal digit from `first` to `last`, in either case.
Expr HexDigit(GrammarBuilder& builder, uint32_t first, uint32_t last) {
  static constexpr absl::string_view kLower = "0123456789abcdef", kUpper = "0123456789ABCDEF";
  ByteSet digits;
  for (uint32_t digit = first; digit <= last; ++digit) {
    digits.set(static_cast<uint8_t>(kLower[digit]));
    digits.set(static_cast<uint8_t>(kUpper[digit]));
  }
  return builder.Byte(digits);
}

// The numbers from `first` to `last` in exactly `digits` hexadecimal digits, as options.
void HexRange(GrammarBuilder& builder, uint32_t first, uint32_t last, uint32_t digits,
              const std::vector<Expr>& before, std::vector<Expr>* options) {
  if (digits == 0) {
    options->push_back(builder.Sequence(before));
    return;
  }
  const uint32_t shift = 4 * (digits - 1), rest = (1u << shift) - 1;
  const auto add = [&](uint32_t low, uint32_t high, uint32_t rest_first, uint32_t rest_last) {
    std::vector<Expr> with = before;
    with.push_back(HexDigit(builder, low, high));
    HexRange(builder, rest_first, rest_last, digits - 1, with, options);
  };
  uint32_t low = first >> shift, high = last >> shift;
  if (low == high) return add(low, low, first & rest, last & rest);
  if ((first & rest) != 0) add(low, low, first & rest, rest), ++low;
  const bool cut = (last & rest) != rest;
  if (low <= high - (cut ? 1 : 0)) add(low, high - (cut ? 1 : 0), 0, rest);
  if (cut) add(high, high, 0, last & rest);
}

// \uHHHH for the code units from `first` to `last`.
void CodeUnits(GrammarBuilder& builder, uint32_t first, uint32_t last, std::vector<Expr>* options) {
  HexRange(builder, first, last, 4, {builder.Text("\\u")}, options);
}

// The same for code points beyond U+FFFF, as surrogate pairs.
void SurrogatePairs(GrammarBuilder& builder, uint32_t first, uint32_t last,
                    std::vector<Expr>* options) {
  const auto pairs = [&](uint32_t high_first, uint32_t high_last, uint32_t low_first,
                         uint32_t low_last) {
    std::vector<Expr> high, low;
    CodeUnits(builder, kFirstSurrogate + high_first, kFirstSurrogate + high_last, &high);
    CodeUnits(builder, kFirstLowSurrogate + low_first, kFirstLowSurrogate + low_last, &low);
    options->push_back(
        builder.Sequence({builder.Choice(std::move(high)), builder.Choice(std::move(low))}));
  };
  constexpr uint32_t kLowest = 0, kHighest = 0x3FF;
  first -= kFirstOfPairs;
  last -= kFirstOfPairs;
  uint32_t low = first >> 10, high = last >> 10;
  if (low == high) return pairs(low, low, first & kHighest, last & kHighest);
  if ((first & kHighest) != kLowest) pairs(low, low, first & kHighest, kHighest), ++low;
  const bool cut = (last & kHighest) != kHighest;
  if (low <= high - (cut ? 1 : 0)) pairs(low, high - (cut ? 1 : 0), kLowest, kHighest);
  if (cut) pairs(high, high, kLowest, last & kHighest);
}

// Every escape for members of `set`. Surrogates without their partners have none.
void Escapes(GrammarBuilder& builder, const CodePointSet& set, std::vector<Expr>* options) {
  static constexpr absl::string_view kMeant = "\"\\/\b\f\n\r\t", kWritten = "\"\\/bfnrt";
  ByteSet after_backslash;
  for (size_t i = 0; i < kMeant.size(); ++i)
    if (set.Contains(static_cast<uint8_t>(kMeant[i])))
      after_backslash.set(static_cast<uint8_t>(kWritten[i]));
  if (after_backslash.any())
    options->push_back(builder.Sequence({builder.Text("\\"), builder.Byte(after_backslash)}));
  const CodePointSet characters = set.Without(CodePointSet({{kFirstSurrogate, kLastSurrogate}}));
  for (const CodePointRange& range : characters.ranges()) {
    if (range.first < kFirstOfPairs)
      CodeUnits(builder, range.first, std::min(range.last, kFirstOfPairs - 1), options);
    if (range.last >= kFirstOfPairs)
      SurrogatePairs(builder, std::max(range.first, kFirstOfPairs), range.last, options);
  }
}

// The members of `set` that are ASCII.
ByteSet Ascii(const CodePointSet& set) {
  ByteSet ascii;
  for (uint32_t c = 0; c < 0x80; ++c) ascii.set(c, set.Contains(c));
  return ascii;
}

}  // namespace

Expr CharacterSpeller::One(const CodePointSet& set) {
  const auto known = known_.find(set);
  if (known != known_.end()) return known->second;
  return known_[set] = Spell(set);
}

GrammarBuilder::Rule CharacterSpeller::RuleOfOne(const CodePointSet& set) {
  const auto [place, is_new] = rules_.try_emplace(set, 0);
  if (is_new) {
    place->second = builder_.Declare("a character");
    builder_.Define(place->second, One(set));
  }
  return place->second;
}

// ASCII, the common case, takes no call of a rule and so costs one state where a repetition is
// written out.
Expr CharacterSpeller::Spell(const CodePointSet& set) {
  const bool is_json = spelling_ == CharacterSpelling::kJsonString;
  const CodePointSet raw = is_json ? set.Without(RawInJson().Complement()) : set;
  std::vector<Expr> others;
  const CodePointSet raw_others = raw.Without(CodePointSet({{0, 0x7F}}));
  if (!raw_others.empty()) others.push_back(builder_.CodePoint(raw_others.ranges()));
  if (is_json) Escapes(builder_, set, &others);
  std::vector<Expr> options;
  const ByteSet ascii = Ascii(raw);
  if (ascii.any()) options.push_back(builder_.Byte(ascii));
  if (!others.empty()) {
    const GrammarBuilder::Rule rule = builder_.Declare("a character");
    builder_.Define(rule, builder_.Choice(std::move(others)));
    options.push_back(builder_.Call(rule));
  }
  return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
}

}  // namespace inlay
