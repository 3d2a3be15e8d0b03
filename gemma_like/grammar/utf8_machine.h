// The automaton of one code point, in UTF-8, out of some ranges.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_UTF8_MACHINE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_UTF8_MACHINE_H_

#include <bitset>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace inlay {

using ByteSet = std::bitset<256>;

// Code points from `first` to `last`, both included.
struct CodePointRange {
  uint32_t first, last;
};

// Deterministic, and without two states that accept the same.
struct Utf8Machine {
  static constexpr uint32_t kEnd = 0;
  struct Edge {
    ByteSet bytes;
    uint32_t target;
  };

  // By state. State kEnd comes after the last byte and has no edges.
  std::vector<std::vector<Edge>> edges;
  uint32_t start = kEnd;  // kEnd where no code point is accepted
};

// `ranges` are ascending and disjoint. Surrogates and what is above U+10FFFF are left out.
Utf8Machine MakeUtf8Machine(absl::Span<const CodePointRange> ranges);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_UTF8_MACHINE_H_
