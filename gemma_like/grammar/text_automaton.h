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

// The most states that automata of texts have, and the most work they take, together. Shared by all
// texts of a schema, so that many of them do not take more than one may.
struct TextBudget {
  static constexpr size_t kMostStates = 50'000;
  static constexpr size_t kMostWork = 20'000'000;  // states that are looked at; about a second

  size_t states = kMostStates;
  size_t work = kMostWork;

  // False when less was left.
  bool Spend(size_t states_made, size_t work_done);
};

// Whether `text`, in UTF-8, is such a text. This and the following are ResourceExhausted beyond
// `budget`, which they spend.
absl::StatusOr<bool> Satisfies(const TextConstraints& constraints, absl::string_view text,
                               TextBudget& budget);

// Whether there is such a text.
absl::StatusOr<bool> IsSatisfiable(const TextConstraints& constraints, TextBudget& budget);

// These texts, spelled by `speller`. Only several regular expressions, one that looks ahead, or one
// together with bounds that it does not keep itself, take of the budget.
absl::StatusOr<GrammarBuilder::Expr> AddText(GrammarBuilder& builder, CharacterSpeller& speller,
                                             const TextConstraints& constraints,
                                             TextBudget& budget);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TEXT_AUTOMATON_H_
