// Texts of rules one after the other, as an automaton with a bound on their number.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_CHAIN_RULE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_CHAIN_RULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "gemma_like/grammar/grammar_expr.h"

namespace inlay {

// Knows where a chain can still end well, and counts its steps, so that a grammar needs no states
// for each count.
class ChainRule {
 public:
  // Where a text stands: in a state after so many steps, counted as far as they matter.
  struct Place {
    uint32_t state = 0;
    uint64_t steps = 0;
  };

  // A call of a rule, and the place after it.
  struct Call {
    int32_t rule;
    Place after;
  };

  // Takes of `work` the states and steps that are looked at; none if that is not enough.
  static std::optional<ChainRule> Create(GrammarChain chain, size_t* work);

  // Whether there is a text if each of rules() has one; whether the empty text is one.
  bool HasText() const { return CanFinish(Place()); }
  bool AcceptsEmpty() const { return MayEnd(Place()); }

  // The rules that it calls, each once; those that its texts may begin with.
  const std::vector<int32_t>& rules() const { return rules_; }
  std::vector<int32_t> FirstRules() const;

  // Tells which rules have texts. Where one has none, only the empty text is left. To be called
  // once, before places are asked for.
  void SetProductive(const std::vector<bool>& rules);

  // Of places from which it can end.
  bool MayEnd(const Place& place) const;
  std::vector<Call> Calls(const Place& place) const;

  size_t bytes() const;

 private:
  static constexpr uint64_t kNever = ~uint64_t{0};

  explicit ChainRule(GrammarChain chain) : chain_(std::move(chain)) {}

  void FindRules();
  void FindDistances();
  // False beyond `work`.
  bool FindRows(size_t* work);
  bool CanFinish(const Place& place) const;

  GrammarChain chain_;
  std::vector<int32_t> rules_;
  std::vector<uint64_t> distances_;  // by state: the fewest steps to one that accepts
  // By 1, 2, ... steps that are missing to chain_.least, then by state: whether it can end. The
  // last row also holds for more missing steps.
  std::vector<std::vector<bool>> rows_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_CHAIN_RULE_H_
