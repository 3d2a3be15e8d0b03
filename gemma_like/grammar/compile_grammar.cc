#include "gemma_like/grammar/compile_grammar.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/expand_rules.h"
#include "gemma_like/grammar/grammar_analysis.h"

namespace inlay {
namespace {

using Edge = Grammar::Edge;
using EdgeKind = Grammar::EdgeKind;

absl::Status CheckRules(const GrammarSource& source) {
  for (const GrammarRuleSource& rule : source.rules) {
    if (rule.object >= 0 || rule.chain >= 0) continue;
    const std::string name = absl::StrCat("rule ", QuoteForMessage(rule.name));
    if (rule.expr < 0) return absl::InvalidArgumentError(absl::StrCat(name, " is not defined"));
    const GrammarExpr& expr = source.exprs[rule.expr];
    if (expr.depth > kMostExpressionDepth) {
      return absl::ResourceExhaustedError(absl::StrCat(name, " has expressions ", expr.depth,
                                                       " deep within each other, more than ",
                                                       kMostExpressionDepth));
    }
  }
  return absl::OkStatus();
}

absl::Status MakeObjects(const GrammarSource& source, Grammar* grammar) {
  size_t nodes = 0;
  for (const GrammarObject& object : source.objects) {
    auto rule = ObjectRule::Create(object);
    if (!rule.ok()) return About("an object", rule.status());
    nodes += rule->nodes();
    if (nodes > kMostGrammarStates) {
      return absl::ResourceExhaustedError(absl::StrCat("the names of objects have more than ",
                                                       kMostGrammarStates, " bytes together"));
    }
    grammar->objects.push_back(*std::move(rule));
  }
  return absl::OkStatus();
}

// Replaces each edge by what `replace` appends for it.
template <class Replace>
void ReplaceEdges(const Replace& replace, Grammar* grammar) {
  std::vector<uint32_t> from;
  std::vector<Edge> edges;
  for (uint32_t state = 0; state < grammar->states(); ++state) {
    for (uint32_t i = grammar->first_edge[state]; i < grammar->first_edge[state + 1]; ++i) {
      replace(grammar->edges[i], &edges);
    }
    from.resize(edges.size(), state);
  }
  SetEdges(grammar->states(), from, edges, grammar);
}

// Calls of rules that accept the empty text get empty edges beside them.
void AddEmptyCalls(Grammar* grammar) {
  const Finishing empty = FindFinishing(*grammar, Texts::kEmpty);
  const auto replace = [&](const Edge& edge, std::vector<Edge>* edges) {
    edges->push_back(edge);
    if (edge.kind != EdgeKind::kCall || !empty.rules[edge.label]) return;
    edges->push_back({EdgeKind::kEmpty, 0, edge.target});
  };
  ReplaceEdges(replace, grammar);
}

// Without the edges that lead to where no text ends.
void Prune(const Finishing& any, Grammar* grammar) {
  const auto replace = [&](const Edge& edge, std::vector<Edge>* edges) {
    const bool dead = edge.kind == EdgeKind::kCall && !any.rules[edge.label];
    if (any.states[edge.target] && !dead) edges->push_back(edge);
  };
  ReplaceEdges(replace, grammar);
}

// The rules without texts that `rule`, one of them, calls.
std::vector<uint32_t> EmptyCalls(const Grammar& grammar, const Finishing& any, uint32_t rule,
                                 uint32_t end_state) {
  std::vector<uint32_t> calls;
  const auto add = [&](uint32_t called) {
    if (!any.rules[called]) calls.push_back(called);
  };
  const Grammar::Rule& of = grammar.rules[rule];
  if (of.object >= 0) {
    for (const GrammarMember& member : grammar.objects[of.object].object().members)
      if (member.required) add(static_cast<uint32_t>(member.value));
  } else if (of.chain >= 0) {
    for (const int32_t called : grammar.chains[of.chain].rules())
      add(static_cast<uint32_t>(called));
  } else {
    for (uint32_t i = grammar.first_edge[of.start]; i < grammar.first_edge[end_state]; ++i)
      if (grammar.edges[i].kind == EdgeKind::kCall) add(grammar.edges[i].label);
  }
  return calls;
}

// Why `grammar` has no text: what was explained of the rule farthest from the start, each called by
// the one before.
absl::Status NoText(const GrammarSource& source, const Grammar& grammar, const Finishing& any) {
  // States are in the order of their rules.
  std::vector<uint32_t> end_states(grammar.rules.size());
  uint32_t end = static_cast<uint32_t>(grammar.states());
  for (size_t i = grammar.rules.size(); i-- > 0;) {
    end_states[i] = end;
    if (grammar.rules[i].has_states()) end = grammar.rules[i].start;
  }
  absl::string_view why;
  std::vector<bool> seen(grammar.rules.size());
  for (uint32_t rule = grammar.start;;) {
    seen[rule] = true;
    if (!source.rules[rule].why_empty.empty()) why = source.rules[rule].why_empty;
    const std::vector<uint32_t> calls = EmptyCalls(grammar, any, rule, end_states[rule]);
    const auto next =
        std::find_if(calls.begin(), calls.end(), [&](uint32_t called) { return !seen[called]; });
    if (next == calls.end()) break;
    rule = *next;
  }
  if (!why.empty()) return absl::InvalidArgumentError(why);
  return absl::InvalidArgumentError(
      absl::StrCat("no text matches rule ", QuoteForMessage(grammar.rules[grammar.start].name)));
}

void MakeClasses(Grammar* grammar) {
  std::vector<ByteSet> sets = grammar->sets;
  for (const ObjectRule& object : grammar->objects) object.AppendByteSets(&sets);
  std::array<uint32_t, 256> class_of = {};
  uint32_t classes = 1;
  for (const ByteSet& set : sets) {
    // By class before, and whether the byte is in the set.
    std::array<uint32_t, 2 * 256> refined;
    refined.fill(256);
    classes = 0;
    for (int byte = 0; byte < 256; ++byte) {
      uint32_t& id = refined[2 * class_of[byte] + set.test(byte)];
      if (id == 256) id = classes++;
      class_of[byte] = id;
    }
  }
  grammar->representatives.resize(classes);
  grammar->class_sizes.resize(classes);
  for (int byte = 255; byte >= 0; --byte) {
    ++grammar->class_sizes[class_of[byte]];
    grammar->class_of[byte] = static_cast<uint8_t>(class_of[byte]);
    grammar->representatives[class_of[byte]] = static_cast<uint8_t>(byte);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Grammar>> CompileGrammar(const GrammarSource& source,
                                                              int32_t start) {
  INLAY_RETURN_IF_ERROR(CheckRules(source));
  const auto grammar = std::make_shared<Grammar>();
  INLAY_RETURN_IF_ERROR(MakeObjects(source, grammar.get()));
  grammar->chains = source.chains;
  grammar->start = static_cast<uint32_t>(start);
  ExpandRules(source, grammar.get());
  AddEmptyCalls(grammar.get());
  INLAY_RETURN_IF_ERROR(CheckLeftCalls(*grammar));
  const Finishing any = FindFinishing(*grammar, Texts::kAny);
  if (!any.rules[grammar->start]) return NoText(source, *grammar, any);
  Prune(any, grammar.get());
  for (ObjectRule& object : grammar->objects) object.SetProductive(any.rules);
  for (ChainRule& chain : grammar->chains) chain.SetProductive(any.rules);
  MakeClasses(grammar.get());
  return grammar;
}

}  // namespace inlay
