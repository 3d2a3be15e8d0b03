#include "gemma_like/grammar/expand_rules.h"

#include <string>
#include <unordered_map>
#include <utility>

namespace inlay {
namespace {

using Edge = Grammar::Edge;
using EdgeKind = Grammar::EdgeKind;

class Expander {
 public:
  Expander(const GrammarSource& source, Grammar* grammar) : source_(source), grammar_(*grammar) {}

  void Run() {
    for (const GrammarRuleSource& rule : source_.rules) {
      Grammar::Rule& made = grammar_.rules.emplace_back();
      made.name = rule.name;
      made.object = rule.object;
      made.chain = rule.chain;
      if (!made.has_states()) continue;
      made.start = NewState();
      made.end = NewState();
      Expand(rule.expr, made.start, made.end);
    }
    grammar_.is_end.resize(states_);
    for (const Grammar::Rule& rule : grammar_.rules) {
      if (rule.has_states()) grammar_.is_end[rule.end] = true;
    }
    SetEdges(states_, from_, edges_, &grammar_);
  }

 private:
  uint32_t NewState() { return states_++; }

  void Add(uint32_t from, EdgeKind kind, uint32_t label, uint32_t to) {
    from_.push_back(from);
    edges_.push_back({kind, label, to});
  }

  void AddBytes(uint32_t from, const ByteSet& bytes, uint32_t to) {
    if (bytes.none()) return;
    const auto [at, is_new] = set_ids_.emplace(bytes, static_cast<uint32_t>(grammar_.sets.size()));
    if (is_new) grammar_.sets.push_back(bytes);
    Add(from, EdgeKind::kBytes, at->second, to);
  }

  // Leads from `from` to `to`. No edge is added that enters `from` or leaves `to`, so that
  // alternatives can share both.
  void Expand(int32_t id, uint32_t from, uint32_t to) {
    using Kind = GrammarExpr::Kind;
    const GrammarExpr& expr = source_.exprs[id];
    switch (expr.kind) {
      case Kind::kNothing:
        break;
      case Kind::kEmpty:
        Add(from, EdgeKind::kEmpty, 0, to);
        break;
      case Kind::kText:
        ExpandText(expr.text, from, to);
        break;
      case Kind::kBytes:
      case Kind::kCodePoint:
        ExpandMachine(expr.machine, from, to);
        break;
      case Kind::kSequence:
        ExpandSequence(expr, from, to);
        break;
      case Kind::kChoice:
        for (const int32_t part : expr.parts) Expand(part, from, to);
        break;
      case Kind::kRepeat:
        ExpandRepeat(expr, from, to);
        break;
      case Kind::kCall:
        Add(from, EdgeKind::kCall, static_cast<uint32_t>(expr.rule), to);
        break;
    }
  }

  void ExpandText(const std::string& text, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < text.size(); ++i) {
      const uint32_t next = i + 1 == text.size() ? to : NewState();
      AddBytes(from, ByteSet().set(static_cast<uint8_t>(text[i])), next);
      from = next;
    }
    if (text.empty()) Add(from, EdgeKind::kEmpty, 0, to);
  }

  void ExpandMachine(const Utf8Machine& machine, uint32_t from, uint32_t to) {
    if (machine.start == Utf8Machine::kEnd) return;
    std::vector<uint32_t> states(machine.edges.size());
    for (size_t i = 0; i < states.size(); ++i) {
      states[i] = i == Utf8Machine::kEnd ? to : i == machine.start ? from : NewState();
    }
    for (size_t i = 0; i < states.size(); ++i) {
      for (const Utf8Machine::Edge& edge : machine.edges[i]) {
        AddBytes(states[i], edge.bytes, states[edge.target]);
      }
    }
  }

  void ExpandSequence(const GrammarExpr& expr, uint32_t from, uint32_t to) {
    for (size_t i = 0; i < expr.parts.size(); ++i) {
      const uint32_t next = i + 1 == expr.parts.size() ? to : NewState();
      Expand(expr.parts[i], from, next);
      from = next;
    }
    if (expr.parts.empty()) Add(from, EdgeKind::kEmpty, 0, to);
  }

  void ExpandRepeat(const GrammarExpr& expr, uint32_t from, uint32_t to) {
    uint32_t at = NewState();
    Add(from, EdgeKind::kEmpty, 0, at);
    const uint64_t copies = expr.most == kUnlimited ? expr.least : expr.most;
    for (uint64_t i = 0; i < copies; ++i) {
      if (i >= expr.least) Add(at, EdgeKind::kEmpty, 0, to);
      const uint32_t next = NewState();
      Expand(expr.parts[0], at, next);
      at = next;
    }
    if (expr.most == kUnlimited) Expand(expr.parts[0], at, at);
    Add(at, EdgeKind::kEmpty, 0, to);
  }

  const GrammarSource& source_;
  Grammar& grammar_;
  uint32_t states_ = 0;
  std::vector<uint32_t> from_;  // of edges_
  std::vector<Edge> edges_;
  std::unordered_map<ByteSet, uint32_t> set_ids_;
};

}  // namespace

void ExpandRules(const GrammarSource& source, Grammar* grammar) { Expander(source, grammar).Run(); }

void SetEdges(size_t states, const std::vector<uint32_t>& from, const std::vector<Edge>& edges,
              Grammar* grammar) {
  grammar->first_edge.assign(states + 1, 0);
  for (const uint32_t state : from) ++grammar->first_edge[state + 1];
  for (size_t i = 0; i < states; ++i) grammar->first_edge[i + 1] += grammar->first_edge[i];
  std::vector<uint32_t> next(grammar->first_edge.begin(), grammar->first_edge.end() - 1);
  grammar->edges.resize(edges.size());
  for (size_t i = 0; i < edges.size(); ++i) grammar->edges[next[from[i]]++] = edges[i];
}

}  // namespace inlay
