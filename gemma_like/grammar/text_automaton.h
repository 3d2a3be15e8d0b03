// Texts that several regular expressions match at once, with a bound on their length.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_TEXT_AUTOMATON_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_TEXT_AUTOMATON_H_

#include <cstddef>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/character_speller.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/regex_parser.h"

namespace inlay {

// What a text must be: `regexes` are searched for in it, and it has this many code points.
struct TextConstraints {
  absl::Span<const Regex* const> regexes;
  size_t least = 0;
  std::optional<size_t> most;
};

// The most states that are built for constraints that hold together.
inline constexpr size_t kMostTextStates = 20000;

// Whether `text`, in UTF-8, is such a text. ResourceExhausted for regular expressions whose
// repetitions need more than kMostTextStates states.
absl::StatusOr<bool> Satisfies(const TextConstraints& constraints, absl::string_view text);

// Whether there is such a text. Errors: those of AddText.
absl::StatusOr<bool> IsSatisfiable(const TextConstraints& constraints);

// These texts, spelled by `speller`. ResourceExhausted when a regular expression would need more
// than kMostTextStates states together with the others or with the bounds.
absl::StatusOr<GrammarBuilder::Expr> AddText(GrammarBuilder& builder, CharacterSpeller& speller,
                                             const TextConstraints& constraints);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TEXT_AUTOMATON_H_
