#include "gemma_like/grammar/compile_grammar.h"

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
    if (rule.object >= 0) continue;
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
  grammar->start = static_cast<uint32_t>(start);
  ExpandRules(source, grammar.get());
  AddEmptyCalls(grammar.get());
  INLAY_RETURN_IF_ERROR(CheckLeftCalls(*grammar));
  const Finishing any = FindFinishing(*grammar, Texts::kAny);
  if (!any.rules[grammar->start]) {
    return absl::InvalidArgumentError(
        absl::StrCat("no text matches rule ", QuoteForMessage(grammar->rules[start].name)));
  }
  Prune(any, grammar.get());
  for (ObjectRule& object : grammar->objects) object.SetProductive(any.rules);
  MakeClasses(grammar.get());
  return grammar;
}

}  // namespace inlay
