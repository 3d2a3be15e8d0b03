#include "io/tokenizer/nfc.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <vector>

#include "base/utf8.h"

namespace inlay {
namespace {

struct CodePointRange {
  char32_t first, last;
};
struct ClassRange {
  char32_t first, last;
  uint8_t combining_class;
};
// One step: `second` is 0 for a character that becomes another one.
struct Decomposition {
  char32_t composed, first, second;
};
struct Composition {
  char32_t first, second, composed;
};

// kClasses: combining classes that are not 0. kUnstable: characters that may change, move or join
// the one before them. All tables are sorted.
#include "io/tokenizer/nfc.inc"

// Nothing below this code point changes, moves or joins others.
constexpr char32_t kFirstUnstable = 0x300;

// Hangul syllables are numbered by their parts (The Unicode Standard, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTrails = 0x11A7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTrailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTrailCount;

// The range with `c`, or nullptr.
template <class T, size_t n>
const T* FindRange(const T (&ranges)[n], char32_t c) {
  const T* found = std::upper_bound(std::begin(ranges), std::end(ranges), c,
                                    [](char32_t c, const T& range) { return c < range.first; });
  if (found == std::begin(ranges) || (--found)->last < c) return nullptr;
  return found;
}

// Whether nothing before `c` changes it, and it changes nothing before it: a text may be cut here.
bool IsStable(char32_t c) { return c < kFirstUnstable || FindRange(kUnstable, c) == nullptr; }

// The same for a character of a text, and for bytes that are none: these have a cut behind them,
// too.
bool IsCut(const CodePoint& c) { return !c.valid || IsStable(c.value); }

uint8_t ClassOfCombining(char32_t c) {
  if (c < kFirstUnstable) return 0;
  const ClassRange* range = FindRange(kClasses, c);
  return range == nullptr ? 0 : range->combining_class;
}

struct CombiningCharacter {
  char32_t code_point;
  uint8_t combining_class;
};

void Decompose(char32_t c, std::vector<CombiningCharacter>* out) {
  if (const uint32_t syllable = c - kSyllables; c >= kSyllables && syllable < kSyllableCount) {
    out->push_back({kLeads + syllable / (kVowelCount * kTrailCount), 0});
    out->push_back({kVowels + syllable / kTrailCount % kVowelCount, 0});
    if (syllable % kTrailCount != 0) out->push_back({kTrails + syllable % kTrailCount, 0});
    return;
  }
  const Decomposition* found =
      std::lower_bound(std::begin(kDecompositions), std::end(kDecompositions), c,
                       [](const Decomposition& d, char32_t c) { return d.composed < c; });
  if (found == std::end(kDecompositions) || found->composed != c) {
    out->push_back({c, ClassOfCombining(c)});
    return;
  }
  Decompose(found->first, out);
  if (found->second != 0) Decompose(found->second, out);
}

// What the two become together, or 0.
char32_t Compose(char32_t first, char32_t second) {
  if (first >= kLeads && first < kLeads + kLeadCount && second >= kVowels &&
      second < kVowels + kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTrailCount;
  }
  if (first >= kSyllables && first < kSyllables + kSyllableCount &&
      (first - kSyllables) % kTrailCount == 0 && second > kTrails &&
      second < kTrails + kTrailCount) {
    return first + (second - kTrails);
  }
  const Composition* found =
      std::lower_bound(std::begin(kCompositions), std::end(kCompositions), second,
                       [&](const Composition& c, char32_t) {
                         return c.first != first ? c.first < first : c.second < second;
                       });
  if (found == std::end(kCompositions) || found->first != first || found->second != second)
    return 0;
  return found->composed;
}

// Puts marks between two characters of class 0 in order of their classes, and joins each character
// with the last one of class 0 unless one of the same class or of class 0 is between them.
void OrderAndCompose(std::vector<CombiningCharacter>* text) {
  std::vector<CombiningCharacter>& t = *text;
  const auto is_starter = [](const CombiningCharacter& c) { return c.combining_class == 0; };
  for (auto begin = t.begin(); begin != t.end();) {
    const auto end = std::find_if(begin, t.end(), is_starter);
    std::stable_sort(begin, end, [](const CombiningCharacter& a, const CombiningCharacter& b) {
      return a.combining_class < b.combining_class;
    });
    begin = end == t.end() ? end : end + 1;
  }
  size_t starter = t.size(), kept = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    if (starter < kept) {
      const bool adjacent = starter + 1 == kept;
      const bool blocked = !adjacent && t[kept - 1].combining_class >= t[i].combining_class;
      const char32_t composed = blocked ? 0 : Compose(t[starter].code_point, t[i].code_point);
      if (composed != 0) {
        t[starter].code_point = composed;
        continue;
      }
    }
    if (is_starter(t[i])) starter = kept;
    t[kept++] = t[i];
  }
  t.resize(kept);
}

// A stretch that no cut divides.
void NormalizeStretch(absl::string_view text, std::string* out) {
  std::vector<CombiningCharacter> characters;
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = DecodeUtf8(text.substr(at));
    Decompose(c.value, &characters);
    at += c.length;
  }
  OrderAndCompose(&characters);
  for (const CombiningCharacter& c : characters) AppendUtf8(c.code_point, out);
}

// A text between two cuts. Most of it is copied: stretches without an unstable character are as
// they should be.
void Normalize(absl::string_view text, std::string* out) {
  size_t copied = 0, start = 0;  // the end of what `out` has, and the last place to cut
  for (size_t at = 0; at < text.size();) {
    const CodePoint c = DecodeUtf8(text.substr(at));
    if (IsCut(c)) {
      start = c.valid ? at : at + c.length;
      at += c.length;
      continue;
    }
    do {
      at += DecodeUtf8(text.substr(at)).length;
    } while (at < text.size() && !IsCut(DecodeUtf8(text.substr(at))));
    out->append(text.data() + copied, start - copied);
    NormalizeStretch(text.substr(start, at - start), out);
    copied = start = at;
  }
  out->append(text.data() + copied, text.size() - copied);
}

}  // namespace

void NfcStream::Push(absl::string_view text, std::string* out) {
  held_.append(text.data(), text.size());
  const absl::string_view held = held_;
  size_t cut = 0;
  while (scanned_ < held.size()) {
    const absl::string_view rest = held.substr(scanned_);
    const CodePoint c = DecodeUtf8(rest);
    if (!c.valid && IncompleteUtf8Tail(rest.substr(0, kLongestCharacter)) == rest.size()) break;
    if (IsCut(c)) cut = c.valid ? scanned_ : scanned_ + c.length;
    scanned_ += c.length;
  }
  Normalize(held.substr(0, cut), out);
  held_.erase(0, cut);
  scanned_ -= cut;
}

void NfcStream::Finish(std::string* out) {
  Normalize(held_, out);
  held_.clear();
  scanned_ = 0;
}

}  // namespace inlay
