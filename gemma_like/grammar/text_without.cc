#include "gemma_like/grammar/text_without.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/printable.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

// A marker is begun by its first character alone, so a text is a row of other characters, of
// beginnings of markers that another beginning cuts off, and of beginnings that another character
// breaks off.
class TextWithout {
 public:
  // `markers` are sorted, so that those with the same beginning are neighbours.
  TextWithout(GrammarBuilder& builder, absl::Span<const std::string> markers)
      : builder_(builder), markers_(markers), first_(markers[0][0]) {}

  Expr Add() {
    const Expr cut_off = builder_.Repeat(Beginning(markers_, 0), 0, std::nullopt);
    const Expr broken_off = Begin(Broken(markers_, 1));
    const Expr part = builder_.Choice({Except({first_}), builder_.Sequence({cut_off, broken_off})});
    return builder_.Sequence({builder_.Repeat(part, 0, std::nullopt), cut_off});
  }

 private:
  using Markers = absl::Span<const std::string>;

  Expr Begin(Expr rest) { return builder_.Sequence({builder_.Text(std::string(1, first_)), rest}); }

  // Any character but these.
  Expr Except(std::vector<char> characters) {
    std::sort(characters.begin(), characters.end());
    std::vector<CodePointRange> ranges;
    uint32_t next = 0;
    for (const char c : characters) {
      const auto point = static_cast<uint32_t>(c);
      if (point > next) ranges.push_back({next, point - 1});
      next = point + 1;
    }
    ranges.push_back({next, 0x10FFFF});
    return builder_.CodePoint(ranges);
  }

  // act(character, markers) for each character that may follow `depth` characters of `markers`.
  template <class Act>
  static void ForEachNext(Markers markers, size_t depth, const Act& act) {
    for (size_t i = 0, last = 0; i < markers.size(); i = last) {
      while (last < markers.size() && markers[last][depth] == markers[i][depth]) ++last;
      act(markers[i][depth], markers.subspan(i, last - i));
    }
  }

  static bool IsWhole(Markers markers, size_t size) {
    return std::any_of(markers.begin(), markers.end(),
                       [&](const std::string& marker) { return marker.size() == size; });
  }

  // At least the next character of a marker, and not its last.
  Expr Beginning(Markers markers, size_t depth) {
    std::vector<Expr> options;
    ForEachNext(markers, depth, [&](char c, Markers these) {
      if (IsWhole(these, depth + 1)) return;
      options.push_back(
          builder_.Sequence({builder_.Text(std::string(1, c)),
                             builder_.Choice({builder_.Empty(), Beginning(these, depth + 1)})}));
    });
    return options.empty() ? builder_.Nothing() : builder_.Choice(std::move(options));
  }

  // What follows `depth` characters of markers and does not end as one of them.
  Expr Broken(Markers markers, size_t depth) {
    std::vector<char> others = {first_};
    std::vector<Expr> options;
    ForEachNext(markers, depth, [&](char c, Markers these) {
      others.push_back(c);
      if (IsWhole(these, depth + 1)) return;
      options.push_back(
          builder_.Sequence({builder_.Text(std::string(1, c)), Broken(these, depth + 1)}));
    });
    options.push_back(Except(std::move(others)));
    return builder_.Choice(std::move(options));
  }

  GrammarBuilder& builder_;
  const Markers markers_;
  const char first_;
};

}  // namespace

absl::StatusOr<Expr> AddTextWithout(GrammarBuilder& builder, std::vector<std::string> markers) {
  std::sort(markers.begin(), markers.end());
  markers.erase(std::unique(markers.begin(), markers.end()), markers.end());
  for (const std::string& marker : markers) {
    const bool fits = marker.size() > 1 && marker[0] == markers[0][0] && marker.size() < 100 &&
                      marker.find(marker[0], 1) == std::string::npos &&
                      std::all_of(marker.begin(), marker.end(), [](char c) {
                        return absl::ascii_isascii(static_cast<unsigned char>(c));
                      });
    if (!fits)
      return absl::InvalidArgumentError(absl::StrCat(
          "'", PrintableName(marker), "' is a marker that cannot be kept out of a text"));
  }
  if (markers.empty()) return absl::InvalidArgumentError("there is no marker to be kept out");
  return TextWithout(builder, markers).Add();
}

}  // namespace inlay
