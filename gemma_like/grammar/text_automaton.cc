#include "gemma_like/grammar/text_automaton.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "gemma_like/grammar/chain_rule.h"
#include "gemma_like/grammar/regex_grammar.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;
using StateSet = std::vector<uint32_t>;  // ascending

// The most states of the automaton of one regular expression before it is made deterministic.
constexpr size_t kMostNfaStates = 20'000;
// So many pieces of Classes() take the time of looking at one state.
constexpr size_t kPiecesPerWork = 16;

absl::Status TooLarge() {
  return absl::ResourceExhaustedError(
      absl::StrCat("regular expressions, with what else restricts their texts, such as a large "
                   "maxLength, need more than ",
                   TextBudget::kMostStates, " states"));
}

const CodePointSet& AnyCodePoint() {
  static const auto& any = *new CodePointSet(CodePointSet::All());
  return any;
}

// Thompson's automaton of the branches of a regular expression that is searched for, over code
// points. The expression, whose classes it refers to, must outlive it.
class CodePointNfa {
 public:
  // `negated`: it accepts the texts that no branch matches.
  static absl::StatusOr<CodePointNfa> Make(const Regex& regex, bool negated, TextBudget& budget) {
    CodePointNfa nfa;
    nfa.negated_ = negated;
    nfa.end_ = nfa.NewState();
    nfa.start_ = nfa.NewState();
    for (const RegexBranch& branch : regex.branches) {
      const uint32_t first = nfa.NewState(), last = nfa.NewState();
      nfa.Jump(nfa.start_, first);
      nfa.Jump(last, nfa.end_);
      if (!branch.from_start) nfa.states_[first].steps.push_back({&AnyCodePoint(), first});
      if (!branch.to_end) nfa.states_[last].steps.push_back({&AnyCodePoint(), last});
      // Not from `last` itself, which a repetition at the end of the core might leave again.
      const uint32_t core_end = nfa.NewState();
      nfa.Jump(core_end, last);
      const uint32_t core_start = nfa.NewState();
      nfa.Jump(first, core_start);
      if (!nfa.Add(branch.core, core_start, core_end)) return TooLarge();
    }
    if (!budget.Spend(0, nfa.states_.size())) return TooLarge();
    return nfa;
  }

  StateSet Start() const { return Close({start_}); }
  bool Accepts(const StateSet& states) const {
    return std::binary_search(states.begin(), states.end(), end_) != negated_;
  }
  // Whether it accepts nothing that goes on from `states`.
  bool IsDead(const StateSet& states) const { return states.empty() && !negated_; }
  StateSet After(const StateSet& states, uint32_t code_point) const {
    StateSet next;
    for (const uint32_t state : states)
      for (const Step& step : states_[state].steps)
        if (step.set->Contains(code_point)) next.push_back(step.target);
    return Close(std::move(next));
  }

  void CollectSets(std::vector<const CodePointSet*>* sets) const {
    for (const State& state : states_)
      for (const Step& step : state.steps) sets->push_back(step.set);
  }

 private:
  struct Step {
    const CodePointSet* set;
    uint32_t target;
  };
  struct State {
    std::vector<Step> steps;
    std::vector<uint32_t> jumps;
  };

  uint32_t NewState() {
    states_.emplace_back();
    return static_cast<uint32_t>(states_.size() - 1);
  }
  void Jump(uint32_t from, uint32_t to) { states_[from].jumps.push_back(to); }

  // Adds the ways from `from` to `to` that `node` has; false beyond the bound.
  bool Add(const RegexNode& node, uint32_t from, uint32_t to) {
    if (states_.size() > kMostNfaStates) return false;
    switch (node.kind) {
      case RegexNode::Kind::kClass:
        states_[from].steps.push_back({&node.set, to});
        return true;
      case RegexNode::Kind::kChoice:
        return std::all_of(node.parts.begin(), node.parts.end(), [&](const RegexNode& part) {
          const uint32_t start = NewState();
          Jump(from, start);
          return Add(part, start, to);
        });
      case RegexNode::Kind::kRepeat:
        return AddRepeat(node, from, to);
      default:
        for (const RegexNode& part : node.parts) {
          const uint32_t next = NewState();
          if (!Add(part, from, next)) return false;
          from = next;
        }
        Jump(from, to);
        return true;
    }
  }

  bool AddRepeat(const RegexNode& node, uint32_t from, uint32_t to) {
    const RegexNode& part = node.parts[0];
    // Repetitions of the empty text add nothing.
    if (MostCodePoints(part) == size_t{0}) {
      Jump(from, to);
      return true;
    }
    for (size_t i = 0; i < node.most.value_or(node.least); ++i) {
      if (i >= node.least) Jump(from, to);
      const uint32_t next = NewState();
      if (!Add(part, from, next)) return false;
      from = next;
    }
    if (!node.most) {
      const uint32_t loop = NewState(), back = NewState();
      Jump(from, loop);
      if (!Add(part, loop, back)) return false;
      Jump(back, loop);
      from = loop;
    }
    Jump(from, to);
    return true;
  }

  // Adds what jumps lead to; ascending.
  StateSet Close(StateSet states) const {
    std::unordered_set<uint32_t> seen(states.begin(), states.end());
    states.assign(seen.begin(), seen.end());
    for (size_t i = 0; i < states.size(); ++i)
      for (const uint32_t next : states_[states[i]].jumps)
        if (seen.insert(next).second) states.push_back(next);
    std::sort(states.begin(), states.end());
    return states;
  }

  std::vector<State> states_;
  uint32_t start_ = 0, end_ = 0;
  bool negated_ = false;
};

absl::StatusOr<std::vector<CodePointNfa>> MakeNfas(absl::Span<const Regex* const> regexes,
                                                   TextBudget& budget) {
  std::vector<CodePointNfa> nfas;
  const auto add = [&](const Regex& regex, bool negated) -> absl::Status {
    INLAY_ASSIGN_OR_RETURN(CodePointNfa nfa, CodePointNfa::Make(regex, negated, budget));
    nfas.push_back(std::move(nfa));
    return absl::OkStatus();
  };
  for (const Regex* regex : regexes) {
    INLAY_RETURN_IF_ERROR(add(*regex, /*negated=*/false));
    for (const Regex& look : regex->ahead) INLAY_RETURN_IF_ERROR(add(look, /*negated=*/false));
    for (const Regex& look : regex->not_ahead) INLAY_RETURN_IF_ERROR(add(look, /*negated=*/true));
  }
  return nfas;
}

// The sets, each once.
std::vector<const CodePointSet*> WithoutRepetition(std::vector<const CodePointSet*> sets) {
  // By address first: repetitions of long classes are many, and comparing those takes time.
  std::sort(sets.begin(), sets.end(), std::less<>());
  sets.erase(std::unique(sets.begin(), sets.end()), sets.end());
  std::sort(sets.begin(), sets.end(),
            [](const CodePointSet* a, const CodePointSet* b) { return *a < *b; });
  const auto equal = [](const CodePointSet* a, const CodePointSet* b) { return *a == *b; };
  sets.erase(std::unique(sets.begin(), sets.end(), equal), sets.end());
  return sets;
}

// The coarsest partition of all code points such that each set is a union of its classes. Starts
// with one class and splits the classes by one set after the other.
absl::StatusOr<std::vector<CodePointSet>> Classes(std::vector<const CodePointSet*> sets,
                                                  TextBudget& budget) {
  sets = WithoutRepetition(std::move(sets));
  std::vector<uint32_t> starts = {0};  // of pieces that no set divides
  for (const CodePointSet* set : sets)
    for (const CodePointRange& range : set->ranges()) {
      starts.push_back(range.first);
      if (range.last < kLastCodePoint) starts.push_back(range.last + 1);
    }
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  const auto piece_from = [&](uint32_t code_point) {
    return static_cast<size_t>(std::lower_bound(starts.begin(), starts.end(), code_point) -
                               starts.begin());
  };
  std::vector<size_t> class_of(starts.size());   // by piece
  std::vector<size_t> pieces = {starts.size()};  // by class: how many it has
  std::vector<size_t> inside(1), goes_to(1);     // by class: how many pieces go to which class
  for (const CodePointSet* set : sets) {
    const auto for_each_piece = [&](const auto& act) {
      for (const CodePointRange& range : set->ranges()) {
        const bool to_end = range.last == kLastCodePoint;
        const size_t end = to_end ? starts.size() : piece_from(range.last + 1);
        for (size_t i = piece_from(range.first); i < end; ++i) act(i);
      }
    };
    std::vector<size_t> touched;
    size_t looked_at = 0;
    for_each_piece([&](size_t piece) {
      ++looked_at;
      if (inside[class_of[piece]]++ == 0) touched.push_back(class_of[piece]);
    });
    if (!budget.Spend(0, 1 + looked_at / kPiecesPerWork)) return TooLarge();
    for (const size_t old : touched) {
      const size_t moved = std::exchange(inside[old], 0);
      goes_to[old] = moved == pieces[old] ? old : pieces.size();
      if (goes_to[old] == old) continue;
      pieces[old] -= moved;
      pieces.push_back(moved);
      inside.push_back(0);
      goes_to.push_back(0);
    }
    for_each_piece([&](size_t piece) { class_of[piece] = goes_to[class_of[piece]]; });
  }
  std::vector<std::vector<CodePointRange>> ranges(pieces.size());
  for (size_t i = 0; i < starts.size(); ++i) {
    const uint32_t last = i + 1 < starts.size() ? starts[i + 1] - 1 : kLastCodePoint;
    ranges[class_of[i]].push_back({starts[i], last});
  }
  std::vector<CodePointSet> classes;
  for (auto& of_class : ranges) classes.emplace_back(std::move(of_class));
  return classes;
}

// The deterministic automaton of all regular expressions together.
class TextAutomaton {
 public:
  explicit TextAutomaton(std::vector<CodePointNfa> nfas) : nfas_(std::move(nfas)) {}

  absl::Status Build(TextBudget& budget) {
    std::vector<const CodePointSet*> sets;
    for (const CodePointNfa& nfa : nfas_) nfa.CollectSets(&sets);
    INLAY_ASSIGN_OR_RETURN(classes_, Classes(std::move(sets), budget));
    Key start;
    for (const CodePointNfa& nfa : nfas_) start.push_back(nfa.Start());
    Intern(std::move(start));
    for (size_t at = 0; at < states_.size(); ++at) {
      if (!Expand(at, budget)) return TooLarge();
    }
    budget.Spend(states_.size(), 0);
    return absl::OkStatus();
  }

  // Its texts of `least` to `most` code points. Each step is a call of rule_of(set), for a set of
  // code points.
  template <class RuleOf>
  absl::StatusOr<ChainRule> Chain(size_t least, std::optional<size_t> most, const RuleOf& rule_of,
                                  TextBudget& budget) const {
    static const auto& surrogates = *new CodePointSet({{0xD800, 0xDFFF}});  // no text has any
    GrammarChain chain;
    chain.least = least;
    chain.most = most.value_or(chain.most);
    for (const State& state : states_) {
      std::map<size_t, std::vector<CodePointRange>> targets;
      for (size_t c = 0; c < classes_.size(); ++c) {
        if (!state.next[c]) continue;
        const absl::Span<const CodePointRange> ranges = classes_[c].ranges();
        std::vector<CodePointRange>& target = targets[*state.next[c]];
        target.insert(target.end(), ranges.begin(), ranges.end());
      }
      GrammarChain::State& made = chain.states.emplace_back();
      made.accepts = state.accepts;
      for (auto& [target, ranges] : targets) {
        const CodePointSet set = CodePointSet(std::move(ranges)).Without(surrogates);
        if (!set.empty()) made.steps.push_back({rule_of(set), static_cast<uint32_t>(target)});
      }
    }
    std::optional<ChainRule> rule = ChainRule::Create(std::move(chain), &budget.work);
    if (!rule) return TooLarge();
    return *std::move(rule);
  }

 private:
  using Key = std::vector<StateSet>;  // of each automaton
  struct State {
    const Key* key;
    bool accepts;
    std::vector<std::optional<size_t>> next;  // by class
  };

  size_t Intern(Key key) {
    const auto [place, is_new] = known_.try_emplace(std::move(key), states_.size());
    if (is_new) {
      bool accepts = true;
      for (size_t i = 0; i < nfas_.size(); ++i)
        accepts = accepts && nfas_[i].Accepts(place->first[i]);
      states_.push_back({&place->first, accepts, {}});
    }
    return place->second;
  }

  // False when the budget is spent.
  bool Expand(size_t at, TextBudget& budget) {
    const Key key = *states_[at].key;
    std::vector<std::optional<size_t>> next(classes_.size());
    for (size_t c = 0; c < classes_.size(); ++c) {
      Key after;
      size_t work = 0;
      const uint32_t member = classes_[c].ranges()[0].first;
      for (size_t i = 0; i < nfas_.size(); ++i) {
        after.push_back(nfas_[i].After(key[i], member));
        work += 10 + key[i].size() + after[i].size();
      }
      if (!budget.Spend(0, work)) return false;
      bool is_dead = false;
      for (size_t i = 0; i < nfas_.size(); ++i) is_dead = is_dead || nfas_[i].IsDead(after[i]);
      if (!is_dead) next[c] = Intern(std::move(after));
      if (states_.size() > budget.states) return false;
    }
    states_[at].next = std::move(next);
    return true;
  }

  const std::vector<CodePointNfa> nfas_;
  std::vector<CodePointSet> classes_;
  std::map<Key, size_t> known_;
  std::vector<State> states_;
};

// The repetition of one class that `regex` is, if it is one.
const RegexNode* OneRepetition(const Regex& regex) {
  if (regex.branches.size() != 1 || regex.looks_ahead()) return nullptr;
  const RegexBranch& branch = regex.branches[0];
  if (!branch.from_start || !branch.to_end) return nullptr;
  const RegexNode* node = &branch.core;
  while (node->kind == RegexNode::Kind::kSequence && node->parts.size() == 1)
    node = &node->parts[0];
  const bool is_one =
      node->kind == RegexNode::Kind::kRepeat && node->parts[0].kind == RegexNode::Kind::kClass;
  return is_one ? node : nullptr;
}

// Whether all texts that the branches of `regex` match are as long as they must be.
bool HasLength(const Regex& regex, const TextConstraints& constraints) {
  return std::all_of(regex.branches.begin(), regex.branches.end(), [&](const RegexBranch& branch) {
    if (FewestCodePoints(branch.core) < constraints.least) return false;
    if (!constraints.most) return true;
    const std::optional<size_t> most = MostCodePoints(branch.core);
    return branch.from_start && branch.to_end && most && *most <= *constraints.most;
  });
}

Expr Repetition(GrammarBuilder& builder, CharacterSpeller& speller, const CodePointSet& set,
                size_t least, std::optional<size_t> most) {
  if (most && *most < least) return builder.Nothing();
  if (std::max(least, most.value_or(0)) <= kMostWrittenOut)
    return builder.Repeat(speller.One(set), least, most);
  return builder.Counted(speller.RuleOfOne(set), least, most);
}

}  // namespace

bool TextBudget::Spend(size_t states_made, size_t work_done) {
  const bool is_enough = states_made <= states && work_done <= work;
  states -= std::min(states, states_made);
  work -= std::min(work, work_done);
  return is_enough;
}

absl::StatusOr<bool> Satisfies(const TextConstraints& constraints, absl::string_view text,
                               TextBudget& budget) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<CodePointNfa> nfas,
                         MakeNfas(constraints.regexes, budget));
  std::vector<StateSet> states;
  for (const CodePointNfa& nfa : nfas) states.push_back(nfa.Start());
  size_t length = 0;
  for (; !text.empty(); ++length) {
    const CodePoint code_point = DecodeUtf8(text);
    text.remove_prefix(code_point.length);
    for (size_t i = 0; i < nfas.size(); ++i) {
      if (!budget.Spend(0, states[i].size())) return TooLarge();
      states[i] = nfas[i].After(states[i], code_point.value);
    }
  }
  if (length < constraints.least || (constraints.most && length > *constraints.most)) return false;
  for (size_t i = 0; i < nfas.size(); ++i)
    if (!nfas[i].Accepts(states[i])) return false;
  return true;
}

absl::StatusOr<bool> IsSatisfiable(const TextConstraints& constraints, TextBudget& budget) {
  INLAY_ASSIGN_OR_RETURN(std::vector<CodePointNfa> nfas, MakeNfas(constraints.regexes, budget));
  TextAutomaton automaton(std::move(nfas));
  INLAY_RETURN_IF_ERROR(automaton.Build(budget));
  const auto no_rule = [](const CodePointSet&) { return 0; };
  INLAY_ASSIGN_OR_RETURN(const ChainRule chain,
                         automaton.Chain(constraints.least, constraints.most, no_rule, budget));
  return chain.HasText();
}

absl::StatusOr<Expr> AddText(GrammarBuilder& builder, CharacterSpeller& speller,
                             const TextConstraints& constraints, TextBudget& budget) {
  if (constraints.regexes.empty())
    return Repetition(builder, speller, CodePointSet::All(), constraints.least, constraints.most);
  if (constraints.regexes.size() == 1) {
    const Regex& regex = *constraints.regexes[0];
    if (!regex.looks_ahead() && HasLength(regex, constraints))
      return AddRegex(builder, speller, regex);
    if (const RegexNode* repeat = OneRepetition(regex)) {
      const size_t least = std::max(repeat->least, constraints.least);
      const std::optional<size_t> most = repeat->most && constraints.most
                                             ? std::min(*repeat->most, *constraints.most)
                                             : (repeat->most ? repeat->most : constraints.most);
      return Repetition(builder, speller, repeat->parts[0].set, least, most);
    }
  }
  INLAY_ASSIGN_OR_RETURN(std::vector<CodePointNfa> nfas, MakeNfas(constraints.regexes, budget));
  TextAutomaton automaton(std::move(nfas));
  INLAY_RETURN_IF_ERROR(automaton.Build(budget));
  const auto rule_of = [&](const CodePointSet& set) { return speller.RuleOfOne(set); };
  INLAY_ASSIGN_OR_RETURN(ChainRule chain,
                         automaton.Chain(constraints.least, constraints.most, rule_of, budget));
  return builder.Chain(std::move(chain));
}

}  // namespace inlay
