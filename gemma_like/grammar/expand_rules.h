// Writes the expressions of rules out as the edges of automata.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_EXPAND_RULES_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_EXPAND_RULES_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gemma_like/grammar/grammar.h"
#include "gemma_like/grammar/grammar_source.h"

namespace inlay {

// Fills rules, sets, edges, first_edge and is_end of `grammar` after Thompson's construction
// (Communications of the ACM 11, 1968), repetitions written out. The expressions were checked: this
// takes as many steps as they have states.
void ExpandRules(const GrammarSource& source, Grammar* grammar);

// Sorts edges by the states that they leave: `from` and `edges` belong together. `states` of them.
void SetEdges(size_t states, const std::vector<uint32_t>& from,
              const std::vector<Grammar::Edge>& edges, Grammar* grammar);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_EXPAND_RULES_H_
