#include "io/tokenizer/unicode_classes.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>

namespace inlay {
namespace {

// First code points of stretches of one class, ascending: code point << 3 | class.
constexpr uint32_t kStarts[] = {
#include "io/tokenizer/unicode_classes.inc"
};

CodePointClass Search(char32_t code_point) {
  // The last stretch that starts at or before the code point: no class is above 7.
  const uint32_t key = (static_cast<uint32_t>(code_point) << 3) | 7;
  const uint32_t* after = std::upper_bound(std::begin(kStarts), std::end(kStarts), key);
  return static_cast<CodePointClass>(*(after - 1) & 7);
}

// Answers for the code points that most texts consist of.
constexpr size_t kQuick = 0x500;  // Latin, Greek, Cyrillic

std::array<CodePointClass, kQuick> MakeQuickTable() {
  std::array<CodePointClass, kQuick> table;
  for (size_t c = 0; c < kQuick; ++c) table[c] = Search(static_cast<char32_t>(c));
  return table;
}

}  // namespace

CodePointClass ClassOf(char32_t code_point) {
  static const std::array<CodePointClass, kQuick> quick = MakeQuickTable();
  return code_point < kQuick ? quick[code_point] : Search(code_point);
}

}  // namespace inlay
