#include "gemma_like/grammar/frame_table.h"

#include <algorithm>
#include <cassert>
#include <iterator>
#include <utility>

namespace inlay {
namespace {

using Edge = Grammar::Edge;
using EdgeKind = Grammar::EdgeKind;

// So many words of an object's state take the time of a state of the grammar: they are copied and
// hashed with every byte.
constexpr size_t kWordsPerState = 128;

// Of a frame of a chain.
ChainRule::Place PlaceOf(absl::Span<const uint32_t> words) {
  return {words[1], uint64_t{words[3]} << 32 | words[2]};
}

absl::Span<const Edge> EdgesOf(const Grammar& grammar, uint32_t state) {
  const uint32_t first = grammar.first_edge[state];
  return absl::MakeConstSpan(grammar.edges).subspan(first, grammar.first_edge[state + 1] - first);
}

}  // namespace

FrameTable::FrameTable(const Grammar& grammar)
    : grammar_(grammar), first_(grammar.rules.size()), seen_in_(grammar.states()) {}

void FrameTable::Add(uint32_t state) {
  if (found_.empty() && ++closure_ == 0) {  // all numbers were used once
    std::fill(seen_in_.begin(), seen_in_.end(), 0);
    closure_ = 1;
  }
  open_.push_back(state);
  while (!open_.empty()) {
    const uint32_t from = open_.back();
    open_.pop_back();
    if (std::exchange(seen_in_[from], closure_) == closure_) continue;
    bool matters = grammar_.is_end[from];
    for (const Edge& edge : EdgesOf(grammar_, from)) {
      if (edge.kind == EdgeKind::kEmpty) {
        open_.push_back(edge.target);
      } else {
        matters = true;
      }
    }
    if (matters) found_.push_back(from);
  }
}

FrameTable::Frame FrameTable::InternFound() {
  std::sort(found_.begin(), found_.end());
  const Frame frame = Intern(found_);
  found_.clear();
  return frame;
}

FrameTable::Frame FrameTable::Intern(absl::Span<const uint32_t> words) {
  const Frame frame = words_.Intern(words);
  if (frame < infos_.size()) return frame;
  Info info;
  info.has_states = words[0] < kObject;
  if (words[0] >= kChain) {
    const ChainRule& chain = grammar_.chains[words[0] - kChain];
    const ChainRule::Place place = PlaceOf(words);
    info.may_end = chain.MayEnd(place);
    info.may_go_on = !chain.Calls(place).empty();
  } else if (words[0] >= kObject) {
    info.may_end = ObjectRule::IsDone({words.begin() + 1, words.end()});
    info.may_go_on = !info.may_end;
    info.states = static_cast<uint32_t>(1 + words.size() / kWordsPerState);
  } else {
    info.states = static_cast<uint32_t>(words.size());
    for (const uint32_t state : words) {
      if (grammar_.is_end[state]) info.may_end = true;
      for (const Edge& edge : EdgesOf(grammar_, state)) {
        if (edge.kind != EdgeKind::kEmpty) info.may_go_on = true;
      }
    }
  }
  infos_.push_back(std::move(info));
  return frame;
}

const ObjectRule& FrameTable::ObjectOf(Frame frame) const {
  return grammar_.objects[words_[frame][0] - kObject];
}

ObjectRule::State FrameTable::StateOf(Frame frame) const {
  const absl::Span<const uint32_t> words = words_[frame];
  return {words.begin() + 1, words.end()};
}

FrameTable::Frame FrameTable::InternObject(uint32_t object, const ObjectRule::State& state) {
  std::vector<uint32_t> words = {kObject + object};
  words.insert(words.end(), state.begin(), state.end());
  return Intern(words);
}

FrameTable::Frame FrameTable::InternChain(uint32_t chain, const ChainRule::Place& place) {
  const uint32_t words[] = {kChain + chain, place.state, static_cast<uint32_t>(place.steps),
                            static_cast<uint32_t>(place.steps >> 32)};
  return Intern(words);
}

FrameTable::Frame FrameTable::First(uint32_t rule) {
  if (!first_[rule].has_value()) {
    const int32_t object = grammar_.rules[rule].object, chain = grammar_.rules[rule].chain;
    if (chain >= 0) {
      first_[rule] = InternChain(static_cast<uint32_t>(chain), ChainRule::Place());
    } else if (object >= 0) {
      first_[rule] = InternObject(static_cast<uint32_t>(object), grammar_.objects[object].Start());
    } else {
      Add(grammar_.rules[rule].start);
      first_[rule] = InternFound();
    }
  }
  return *first_[rule];
}

std::optional<FrameTable::Frame> FrameTable::Step(Frame frame, uint8_t byte_class) {
  const uint8_t byte = grammar_.representatives[byte_class];
  if (IsObject(frame)) {
    const auto next = ObjectOf(frame).Step(StateOf(frame), byte);
    if (!next.has_value()) return std::nullopt;
    return InternObject(words_[frame][0] - kObject, *next);
  }
  if (IsChain(frame)) return std::nullopt;
  for (const uint32_t state : words_[frame]) {
    for (const Edge& edge : EdgesOf(grammar_, state)) {
      if (edge.kind == EdgeKind::kBytes && grammar_.sets[edge.label].test(byte)) Add(edge.target);
    }
  }
  if (found_.empty()) return std::nullopt;
  return InternFound();
}

const std::vector<FrameTable::Call>& FrameTable::Calls(Frame frame) {
  if (!infos_[frame].calls.has_value()) {
    std::vector<Call> calls = FindCalls(frame);
    call_bytes_ += calls.capacity() * sizeof(Call);
    infos_[frame].calls = std::move(calls);
  }
  return *infos_[frame].calls;
}

std::vector<FrameTable::Call> FrameTable::FindChainCalls(Frame frame) {
  const uint32_t index = words_[frame][0] - kChain;
  std::vector<Call> calls;
  for (const ChainRule::Call& call : grammar_.chains[index].Calls(PlaceOf(words_[frame]))) {
    const Frame after = InternChain(index, call.after);
    calls.push_back({First(static_cast<uint32_t>(call.rule)), after});
  }
  return calls;
}

std::vector<FrameTable::Call> FrameTable::FindCalls(Frame frame) {
  if (IsChain(frame)) return FindChainCalls(frame);
  if (IsObject(frame)) {
    const auto value = ObjectOf(frame).Call(StateOf(frame));
    if (!value.has_value()) return {};
    const Frame after = InternObject(words_[frame][0] - kObject, value->after);
    return {{First(static_cast<uint32_t>(value->rule)), after}};
  }
  std::vector<std::pair<uint32_t, uint32_t>> targets;  // rule and target
  for (const uint32_t state : words_[frame]) {
    for (const Edge& edge : EdgesOf(grammar_, state)) {
      if (edge.kind == EdgeKind::kCall) targets.emplace_back(edge.label, edge.target);
    }
  }
  std::sort(targets.begin(), targets.end());
  std::vector<Call> calls;
  for (size_t i = 0; i < targets.size();) {
    const uint32_t rule = targets[i].first;
    for (; i < targets.size() && targets[i].first == rule; ++i) Add(targets[i].second);
    const Frame after = InternFound();
    calls.push_back({First(rule), after});
  }
  return calls;
}

FrameTable::Frame FrameTable::Union(Frame a, Frame b) {
  assert(infos_[a].has_states && infos_[b].has_states);
  std::vector<uint32_t> words;
  const absl::Span<const uint32_t> of_a = words_[a], of_b = words_[b];
  std::set_union(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(), std::back_inserter(words));
  return Intern(words);
}

FrameTable::Frame FrameTable::CopyFrom(const FrameTable& table, Frame frame) {
  return Intern(table.words_[frame]);
}

}  // namespace inlay
