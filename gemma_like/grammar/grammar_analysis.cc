#include "gemma_like/grammar/grammar_analysis.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/printable.h"

namespace inlay {
namespace {

using Edge = Grammar::Edge;
using EdgeKind = Grammar::EdgeKind;

constexpr uint32_t kNoRule = ~uint32_t{0};

// Goes backwards from the ends of rules, until nothing new is found.
class FinishingSearch {
 public:
  FinishingSearch(const Grammar& grammar, Texts texts) : grammar_(grammar), texts_(texts) {
    found_.states.resize(grammar.states());
    found_.rules.resize(grammar.rules.size());
    calls_.resize(grammar.rules.size());
    values_.resize(grammar.rules.size());
    chains_of_.resize(grammar.rules.size());
    rule_of_start_.assign(grammar.states(), kNoRule);
    into_.resize(grammar.states());
    for (uint32_t from = 0; from < grammar.states(); ++from) {
      for (uint32_t i = grammar.first_edge[from]; i < grammar.first_edge[from + 1]; ++i) {
        const Edge& edge = grammar.edges[i];
        into_[edge.target].push_back({edge.kind, edge.label, from});
        if (edge.kind == EdgeKind::kCall) calls_[edge.label].emplace_back(from, edge.target);
      }
    }
  }

  Finishing Run() && {
    objects_.resize(grammar_.objects.size());
    chains_.resize(grammar_.chains.size());
    for (uint32_t rule = 0; rule < grammar_.rules.size(); ++rule) {
      const int32_t object = grammar_.rules[rule].object, chain = grammar_.rules[rule].chain;
      if (object >= 0) {
        StartObject(rule, static_cast<uint32_t>(object));
      } else if (chain >= 0) {
        StartChain(rule, static_cast<uint32_t>(chain));
      } else {
        rule_of_start_[grammar_.rules[rule].start] = rule;
        Found(grammar_.rules[rule].end);
      }
    }
    while (!states_.empty() || !rules_.empty()) {
      if (!states_.empty()) {
        VisitState();
      } else {
        VisitRule();
      }
    }
    return std::move(found_);
  }

 private:
  struct ObjectSoFar {
    uint32_t rule = 0;
    size_t required = 0;  // names whose values were not found yet
    size_t usable = 0;
    bool other = false;
  };
  struct ChainSoFar {
    uint32_t rule = 0;
    size_t missing = 0;  // rules that were not found yet
  };
  static constexpr uint32_t kOther = kNoRule;

  void StartObject(uint32_t rule, uint32_t index) {
    const GrammarObject& object = grammar_.objects[index].object();
    objects_[index].rule = rule;
    for (uint32_t i = 0; i < object.members.size(); ++i) {
      objects_[index].required += object.members[i].required;
      values_[object.members[i].value].emplace_back(index, i);
    }
    if (object.other.has_value()) values_[*object.other].emplace_back(index, kOther);
    CheckObject(index);
  }

  void CheckObject(uint32_t index) {
    const ObjectSoFar& object = objects_[index];
    if (texts_ == Texts::kEmpty || object.required > 0) return;
    if (grammar_.objects[index].IsProductive(object.usable, object.other)) FoundRule(object.rule);
  }

  void StartChain(uint32_t rule, uint32_t index) {
    const std::vector<int32_t>& called = grammar_.chains[index].rules();
    chains_[index] = {rule, called.size()};
    for (const int32_t one : called) chains_of_[one].push_back(index);
    CheckChain(index);
  }

  void CheckChain(uint32_t index) {
    const ChainRule& chain = grammar_.chains[index];
    const bool has_steps = texts_ == Texts::kAny && chains_[index].missing == 0 && chain.HasText();
    if (has_steps || chain.AcceptsEmpty()) FoundRule(chains_[index].rule);
  }

  void Found(uint32_t state) {
    if (found_.states[state]) return;
    found_.states[state] = true;
    states_.push_back(state);
  }

  void FoundRule(uint32_t rule) {
    if (found_.rules[rule]) return;
    found_.rules[rule] = true;
    rules_.push_back(rule);
  }

  void VisitState() {
    const uint32_t state = states_.back();
    states_.pop_back();
    if (rule_of_start_[state] != kNoRule) FoundRule(rule_of_start_[state]);
    for (const Edge& edge : into_[state]) {
      const bool passable = edge.kind == EdgeKind::kEmpty ||
                            (edge.kind == EdgeKind::kBytes && texts_ == Texts::kAny) ||
                            (edge.kind == EdgeKind::kCall && found_.rules[edge.label]);
      if (passable) Found(edge.target);
    }
  }

  void VisitRule() {
    const uint32_t rule = rules_.back();
    rules_.pop_back();
    for (const auto& [from, to] : calls_[rule]) {
      if (found_.states[to]) Found(from);
    }
    for (const auto& [index, member] : values_[rule]) {
      ObjectSoFar& object = objects_[index];
      if (member == kOther) {
        object.other = true;
      } else {
        ++object.usable;
        object.required -= grammar_.objects[index].object().members[member].required;
      }
      CheckObject(index);
    }
    for (const uint32_t index : chains_of_[rule]) {
      --chains_[index].missing;
      CheckChain(index);
    }
  }

  const Grammar& grammar_;
  const Texts texts_;
  Finishing found_;
  std::vector<std::vector<Edge>> into_;  // by target; `target` is where the edge comes from
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> calls_;   // by rule: from, to
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> values_;  // by rule: object, member
  std::vector<std::vector<uint32_t>> chains_of_;                    // by rule that they call
  std::vector<uint32_t> rule_of_start_;                             // by state
  std::vector<ObjectSoFar> objects_;
  std::vector<ChainSoFar> chains_;
  std::vector<uint32_t> states_, rules_;  // found, not visited
};

// By rule: the rules that its texts may begin with.
std::vector<std::vector<uint32_t>> LeftCalls(const Grammar& grammar) {
  std::vector<std::vector<uint32_t>> calls(grammar.rules.size());
  std::vector<uint32_t> seen_for(grammar.states(), kNoRule), open;
  for (uint32_t rule = 0; rule < grammar.rules.size(); ++rule) {
    if (const int32_t chain = grammar.rules[rule].chain; chain >= 0) {
      const std::vector<int32_t> first = grammar.chains[chain].FirstRules();
      calls[rule].assign(first.begin(), first.end());
    }
    if (!grammar.rules[rule].has_states()) continue;
    open.push_back(grammar.rules[rule].start);
    while (!open.empty()) {
      const uint32_t state = open.back();
      open.pop_back();
      if (std::exchange(seen_for[state], rule) == rule) continue;
      for (uint32_t i = grammar.first_edge[state]; i < grammar.first_edge[state + 1]; ++i) {
        const Edge& edge = grammar.edges[i];
        if (edge.kind == EdgeKind::kEmpty) open.push_back(edge.target);
        if (edge.kind == EdgeKind::kCall) calls[rule].push_back(edge.label);
      }
    }
  }
  return calls;
}

}  // namespace

Finishing FindFinishing(const Grammar& grammar, Texts texts) {
  return FinishingSearch(grammar, texts).Run();
}

absl::Status CheckLeftCalls(const Grammar& grammar) {
  const std::vector<std::vector<uint32_t>> calls = LeftCalls(grammar);
  // Depth first; a rule that is on the path again is left-recursive.
  struct Step {
    uint32_t rule;
    size_t next_call = 0;
  };
  std::vector<size_t> depth(calls.size());  // 0: not known
  std::vector<bool> on_path(calls.size());
  std::vector<Step> path;
  for (uint32_t first = 0; first < calls.size(); ++first) {
    if (depth[first] == 0) path.push_back({first});
    while (!path.empty()) {
      Step& step = path.back();
      const uint32_t rule = step.rule;
      on_path[rule] = true;
      if (step.next_call < calls[rule].size()) {
        const uint32_t callee = calls[rule][step.next_call++];
        if (on_path[callee]) {
          return absl::InvalidArgumentError(
              absl::StrCat("rule ", QuoteForMessage(grammar.rules[callee].name),
                           " is left-recursive: a text of it may begin with another one"));
        }
        if (depth[callee] == 0) path.push_back({callee});
        continue;
      }
      depth[rule] = 1;
      for (const uint32_t callee : calls[rule])
        depth[rule] = std::max(depth[rule], depth[callee] + 1);
      if (depth[rule] > kMostLeftCalls) {
        return absl::ResourceExhaustedError(absl::StrCat(
            "rule ", QuoteForMessage(grammar.rules[rule].name), " begins with more than ",
            kMostLeftCalls, " rules, each within the one before"));
      }
      on_path[rule] = false;
      path.pop_back();
    }
  }
  return absl::OkStatus();
}

}  // namespace inlay
