#include "gemma_like/grammar/chain_rule.h"

#include <algorithm>
#include <limits>

namespace inlay {

std::optional<ChainRule> ChainRule::Create(GrammarChain chain, size_t* work) {
  ChainRule rule(std::move(chain));
  rule.FindRules();
  rule.FindDistances();
  if (!rule.FindRows(work)) return std::nullopt;
  return rule;
}

void ChainRule::FindRules() {
  for (const GrammarChain::State& state : chain_.states)
    for (const GrammarChain::Step& step : state.steps) rules_.push_back(step.rule);
  std::sort(rules_.begin(), rules_.end());
  rules_.erase(std::unique(rules_.begin(), rules_.end()), rules_.end());
}

// Backwards from the states that accept, the nearest first.
void ChainRule::FindDistances() {
  std::vector<std::vector<uint32_t>> before(chain_.states.size());
  std::vector<uint32_t> found;
  distances_.assign(chain_.states.size(), kNever);
  for (uint32_t i = 0; i < chain_.states.size(); ++i) {
    for (const GrammarChain::Step& step : chain_.states[i].steps) before[step.target].push_back(i);
    if (!chain_.states[i].accepts) continue;
    distances_[i] = 0;
    found.push_back(i);
  }
  for (size_t i = 0; i < found.size(); ++i) {
    for (const uint32_t state : before[found[i]]) {
      if (distances_[state] != kNever) continue;
      distances_[state] = distances_[found[i]] + 1;
      found.push_back(state);
    }
  }
}

// Each row follows from the one before it; once two are equal, so are all further ones.
bool ChainRule::FindRows(size_t* work) {
  const uint32_t size = static_cast<uint32_t>(chain_.states.size());
  size_t steps = size;
  for (const GrammarChain::State& state : chain_.states) steps += state.steps.size();
  std::vector<bool> last(size);
  for (uint32_t i = 0; i < size; ++i) last[i] = CanFinish({i, chain_.least});
  while (rows_.size() < chain_.least) {
    if (steps > *work) return false;
    *work -= steps;
    std::vector<bool> row(size);
    for (uint32_t i = 0; i < size; ++i) {
      const std::vector<GrammarChain::Step>& next = chain_.states[i].steps;
      row[i] = std::any_of(next.begin(), next.end(), [&](const auto& s) { return last[s.target]; });
    }
    rows_.push_back(row);
    if (row == last) break;
    last = std::move(row);
  }
  return true;
}

bool ChainRule::CanFinish(const Place& place) const {
  if (place.steps < chain_.least) {
    const uint64_t missing = std::min<uint64_t>(chain_.least - place.steps, rows_.size());
    return rows_[missing - 1][place.state];
  }
  return distances_[place.state] != kNever && place.steps <= chain_.most &&
         distances_[place.state] <= chain_.most - place.steps;
}

std::vector<int32_t> ChainRule::FirstRules() const {
  std::vector<int32_t> rules;
  for (const GrammarChain::Step& step : chain_.states[0].steps) rules.push_back(step.rule);
  return rules;
}

void ChainRule::SetProductive(const std::vector<bool>& rules) {
  if (std::all_of(rules_.begin(), rules_.end(), [&](int32_t rule) { return rules[rule]; })) return;
  for (GrammarChain::State& state : chain_.states) state.steps.clear();
}

bool ChainRule::MayEnd(const Place& place) const {
  return chain_.states[place.state].accepts && place.steps >= chain_.least &&
         place.steps <= chain_.most;
}

std::vector<ChainRule::Call> ChainRule::Calls(const Place& place) const {
  std::vector<Call> calls;
  if (place.steps >= chain_.most) return calls;
  const bool is_unbounded = chain_.most == std::numeric_limits<size_t>::max();
  const uint64_t steps =
      is_unbounded ? std::min<uint64_t>(place.steps + 1, chain_.least) : place.steps + 1;
  for (const GrammarChain::Step& step : chain_.states[place.state].steps) {
    const Place after = {step.target, steps};
    if (CanFinish(after)) calls.push_back({step.rule, after});
  }
  return calls;
}

size_t ChainRule::bytes() const {
  size_t bytes = sizeof(*this) + rules_.size() * sizeof(rules_[0]) +
                 distances_.size() * sizeof(distances_[0]) +
                 rows_.size() * (sizeof(rows_[0]) + chain_.states.size() / 8);
  for (const GrammarChain::State& state : chain_.states)
    bytes += sizeof(state) + state.steps.size() * sizeof(state.steps[0]);
  return bytes;
}

}  // namespace inlay
