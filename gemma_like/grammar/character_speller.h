// How a grammar spells characters: as they are, or as they stand in a JSON string.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_CHARACTER_SPELLER_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_CHARACTER_SPELLER_H_

#include <map>

#include "gemma_like/grammar/code_point_set.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

enum class CharacterSpelling {
  kPlain,       // UTF-8
  kJsonString,  // between the quotes of a JSON string: also every escape that JSON has for it
};

// Makes expressions for single characters of one grammar. Equal sets share a rule.
class CharacterSpeller {
 public:
  CharacterSpeller(GrammarBuilder& builder, CharacterSpelling spelling)
      : builder_(builder), spelling_(spelling) {}

  // One character out of `set`.
  GrammarBuilder::Expr One(const CodePointSet& set);
  // The same as a rule.
  GrammarBuilder::Rule RuleOfOne(const CodePointSet& set);

 private:
  GrammarBuilder::Expr Spell(const CodePointSet& set);

  GrammarBuilder& builder_;
  const CharacterSpelling spelling_;
  std::map<CodePointSet, GrammarBuilder::Expr> known_;
  std::map<CodePointSet, GrammarBuilder::Rule> rules_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_CHARACTER_SPELLER_H_
