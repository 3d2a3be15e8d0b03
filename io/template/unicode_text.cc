#include "io/template/unicode_text.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "base/utf8.h"

namespace inlay::jinja {
namespace {

// Every `step`th code point from `first` to `last` changes by `difference`.
struct CaseRun {
  char32_t first;
  char32_t last;
  uint32_t step;
  int32_t difference;
};

// A code point that changes to up to three; 0 ends shorter ones.
struct CaseExpansion {
  char32_t code_point;
  char32_t to[3];
};

#include "io/template/unicode_text.inc"

template <class Table>
char32_t InCase(const Table& runs, char32_t code_point) {
  const auto* run = std::lower_bound(std::begin(runs), std::end(runs), code_point,
                                     [](const CaseRun& r, char32_t c) { return r.last < c; });
  if (run == std::end(runs) || code_point < run->first ||
      (code_point - run->first) % run->step != 0)
    return code_point;
  return static_cast<char32_t>(static_cast<int32_t>(code_point) + run->difference);
}

// Appends the expansion of the code point; false when it has none.
template <class Table>
bool AppendExpansion(const Table& expansions, char32_t code_point, std::string* out) {
  const auto* found =
      std::lower_bound(std::begin(expansions), std::end(expansions), code_point,
                       [](const CaseExpansion& e, char32_t c) { return e.code_point < c; });
  if (found == std::end(expansions) || found->code_point != code_point) return false;
  for (const char32_t c : found->to) {
    if (c != 0) AppendUtf8(c, out);
  }
  return true;
}

}  // namespace

bool IsSpace(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool IsPrintable(char32_t c) {
  const char32_t* after =
      std::upper_bound(std::begin(kPrintableStarts), std::end(kPrintableStarts), c);
  return (after - std::begin(kPrintableStarts)) % 2 == 1;
}

bool IsUpper(char32_t c) {
  std::string lower;
  if (AppendExpansion(kLowerExpansions, c, &lower)) return true;
  return InCase(kLowerRuns, c) != c && InCase(kUpperRuns, c) == c;
}

bool IsLower(char32_t c) {
  std::string upper;
  if (AppendExpansion(kUpperExpansions, c, &upper)) return true;
  return InCase(kUpperRuns, c) != c && InCase(kLowerRuns, c) == c;
}

void AppendInCase(char32_t c, Case to, std::string* out) {
  if (to == Case::kLower) {
    if (!AppendExpansion(kLowerExpansions, c, out)) AppendUtf8(InCase(kLowerRuns, c), out);
    return;
  }
  if (to == Case::kTitle && AppendExpansion(kTitleExceptions, c, out)) return;
  if (!AppendExpansion(kUpperExpansions, c, out)) AppendUtf8(InCase(kUpperRuns, c), out);
}

size_t CountCodePoints(absl::string_view text) {
  size_t count = 0;
  while (!text.empty()) {
    const CodePoint c = DecodeUtf8(text);
    text.remove_prefix(c.valid ? c.length : 1);
    ++count;
  }
  return count;
}

size_t ByteOfCodePoint(absl::string_view text, size_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) {
    const CodePoint c = DecodeUtf8(text.substr(at));
    at += c.valid ? c.length : 1;
  }
  return at;
}

size_t LastCodePointSize(absl::string_view text) {
  for (size_t size = std::min<size_t>(text.size(), 4); size > 1; --size) {
    const CodePoint c = DecodeUtf8(text.substr(text.size() - size));
    if (c.valid && c.length == size) return size;
  }
  return std::min<size_t>(text.size(), 1);
}

size_t LeadingSpace(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const CodePoint c = DecodeUtf8(text.substr(at));
    if (!c.valid || !IsSpace(c.value)) break;
    at += c.length;
  }
  return at;
}

size_t TrailingSpace(absl::string_view text) {
  size_t kept = text.size();
  while (kept > 0) {
    const size_t size = LastCodePointSize(text.substr(0, kept));
    const CodePoint c = DecodeUtf8(text.substr(kept - size, size));
    if (!c.valid || !IsSpace(c.value)) break;
    kept -= size;
  }
  return text.size() - kept;
}

size_t LineBreakSize(absl::string_view text) {
  if (text.empty()) return 0;
  if (text.size() > 1 && text[0] == '\r' && text[1] == '\n') return 2;
  const CodePoint c = DecodeUtf8(text);
  const bool breaks =
      c.valid && ((c.value >= 0x0A && c.value <= 0x0D) || (c.value >= 0x1C && c.value <= 0x1E) ||
                  c.value == 0x85 || c.value == 0x2028 || c.value == 0x2029);
  return breaks ? c.length : 0;
}

}  // namespace inlay::jinja
