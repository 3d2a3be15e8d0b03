// Regular expressions as grammars.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_

#include "gemma_like/grammar/character_speller.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/regex_parser.h"

namespace inlay {

// The texts of which some part matches `regex`, as in JSON schema, spelled by `speller`. `regex`
// must not look ahead; AddText() of text_automaton.h takes those that do.
GrammarBuilder::Expr AddRegex(GrammarBuilder& builder, CharacterSpeller& speller,
                              const Regex& regex);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_REGEX_GRAMMAR_H_
