// JSON values as expressions of a grammar, with the white space that there may be between them.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_JSON_VALUES_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_JSON_VALUES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/statusor.h"
#include "gemma_like/grammar/character_speller.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/number_grammar.h"
#include "gemma_like/grammar/text_automaton.h"
#include "io/json/parse_json.h"

namespace inlay {

// Makes the parts that schemas share in one grammar. What is asked for twice is one rule.
class JsonValues {
 public:
  using Expr = GrammarBuilder::Expr;
  using Rule = GrammarBuilder::Rule;

  JsonValues(GrammarBuilder& builder, JsonSpace space);

  // Any value at all.
  Rule Any();
  Expr Number(const NumberConstraints& constraints);
  // Whether Number() has made a rule for them.
  bool Knows(const NumberConstraints& constraints) const;
  // A string in its quotes. Errors: those of AddText.
  absl::StatusOr<Expr> String(const TextConstraints& constraints, TextBudget& budget);
  // A list of `least` to `most` items, where item i is of item(i); from item(same) on they are all
  // alike.
  Expr Array(const std::function<Rule(size_t)>& item, size_t same, size_t least,
             std::optional<size_t> most);
  // One of the values. Strings have one spelling.
  Expr OneOf(const std::vector<const Json*>& values);

  // White space where serializers write none: around a whole text, before commas, in empty lists.
  Expr Around();

 private:
  Expr Space() { return builder_.Call(space_rule_); }
  Expr Next(Rule item);  // a comma and an item
  Expr Exactly(const Json& value);
  Expr ExactNumber(const Json& value);
  Rule RuleOf(std::string name, Expr expr);
  Expr Words(const std::vector<std::string>& sorted, size_t first, size_t last, size_t same,
             size_t depth);

  GrammarBuilder& builder_;
  const JsonSpace space_;
  CharacterSpeller speller_;
  const Rule space_rule_;
  std::optional<Rule> any_;
  using NumberKey = std::tuple<double, double, std::optional<absl::int128>,
                               std::optional<absl::int128>, bool, uint32_t, uint32_t>;
  static NumberKey KeyOf(const NumberConstraints& constraints);
  std::map<NumberKey, Rule> numbers_;
  // Patterns and bounds of the length.
  using StringKey = std::tuple<std::vector<std::string>, size_t, std::optional<size_t>>;
  std::map<StringKey, Rule> strings_;
  AnyDigitRules any_digits_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_JSON_VALUES_H_
