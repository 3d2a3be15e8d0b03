// What compiling JSON schemas may take.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_BUDGET_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_BUDGET_H_

#include <cstddef>

#include "gemma_like/grammar/text_automaton.h"

namespace inlay {

// Schemas of one grammar share it, so that many of them do not take more than one may.
struct SchemaBudget {
  static constexpr size_t kMostSteps = 1'000'000;  // about a second

  size_t steps = kMostSteps;
  TextBudget text;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_SCHEMA_BUDGET_H_
