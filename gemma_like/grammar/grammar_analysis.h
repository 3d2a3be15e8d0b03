// What can be said of the rules of a grammar without any text.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_ANALYSIS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_ANALYSIS_H_

#include <vector>

#include "absl/status/status.h"
#include "gemma_like/grammar/grammar.h"

namespace inlay {

struct Finishing {
  std::vector<bool> states;  // the end of the rule can be reached from there
  std::vector<bool> rules;   // there is such a text
};

// By any text, or by the empty one only.
enum class Texts { kAny, kEmpty };
Finishing FindFinishing(const Grammar& grammar, Texts texts);

// InvalidArgument if a text of some rule begins with a text of the same rule; ResourceExhausted if
// rules begin with each other more than kMostLeftCalls deep. Empty edges beside the calls of rules
// that accept the empty text must be there.
absl::Status CheckLeftCalls(const Grammar& grammar);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_ANALYSIS_H_
