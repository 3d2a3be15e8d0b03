// All that a GrammarBuilder collects.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_SOURCE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_SOURCE_H_

#include <vector>

#include "gemma_like/grammar/chain_rule.h"
#include "gemma_like/grammar/grammar_expr.h"

namespace inlay {

struct GrammarSource {
  std::vector<GrammarExpr> exprs;
  std::vector<GrammarRuleSource> rules;
  std::vector<GrammarObject> objects;
  std::vector<ChainRule> chains;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_SOURCE_H_
