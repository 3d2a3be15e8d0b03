#include "gemma_like/grammar/automaton.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace inlay {

Automaton::Automaton(const Grammar& grammar)
    : grammar_(grammar),
      classes_(static_cast<uint32_t>(grammar.representatives.size())),
      t_(std::make_unique<Tables>(grammar)) {}

Automaton::Config Automaton::Start() { return Only({kBottom, t_->frames.First(grammar_.start)}); }

Automaton::Config Automaton::Leave(Node node) {
  assert(node > kOpen);
  return Normalize({{BelowOf(node), AfterOf(node)}});
}

std::vector<Automaton::Group> Automaton::Groups(Config config) const {
  const absl::Span<const uint32_t> words = t_->configs[config];
  std::vector<Group> groups;
  groups.reserve(words.size() / 2);
  for (size_t i = 0; i < words.size(); i += 2) groups.push_back({words[i], words[i + 1]});
  return groups;
}

Automaton::Node Automaton::MakeNode(Frame after, Node below) {
  const uint32_t words[] = {after, below};
  return t_->nodes.Intern(words) + 2;
}

Automaton::Node Automaton::Rebase(Node node, Node onto, size_t* work) {
  if (node == kOpen) return onto;
  ++*work;
  // No deeper than calls that begin with calls: kMostLeftCalls.
  return MakeNode(AfterOf(node), Rebase(BelowOf(node), onto, work));
}

Automaton::Config Automaton::FindStep(Config config, uint8_t byte_class) {
  Found found;
  const Config next =
      StepGroups(config, byte_class, &found) ? Normalize(std::move(found.groups)) : kTooMany;
  Info& info = t_->infos[config];
  if (const size_t work = found.work + found.within; work > kMostLightWork) {
    info.is_heavy = true;
    t_->heavy[StepKey(config, byte_class)] = static_cast<uint32_t>(work);
  }
  if (info.row == kNone && info.first_next == kNone) {
    info.first_next = next;
    info.first_class = byte_class;
    return next;
  }
  if (info.row == kNone) {
    info.row = NewRow();
    RowOf(info.row)[info.first_class] = info.first_next;
  }
  RowOf(info.row)[byte_class] = next;
  return next;
}

uint32_t Automaton::NewRow() {
  if (t_->next_row % kBlock == 0) t_->rows.emplace_back(kBlock * size_t{classes_}, kNone);
  return t_->next_row++;
}

bool Automaton::StepGroups(Config config, uint8_t byte_class, Found* next) {
  const std::vector<Group> groups = Groups(config);
  if (groups.size() == 1 && groups[0].node == kOpen) {
    return StepFrame(groups[0].frame, byte_class, next);
  }
  for (const Group& group : groups) {
    if (!AppendStep(group.frame, byte_class, group.node, next)) return false;
  }
  return true;
}

// Over kOpen: within the frame, and within the rules that it may call.
bool Automaton::StepFrame(Frame frame, uint8_t byte_class, Found* next) {
  FrameTable& frames = t_->frames;
  if (const auto local = frames.Step(frame, byte_class)) next->groups.push_back({kOpen, *local});
  const std::vector<FrameTable::Call> calls = frames.Calls(frame);
  for (const FrameTable::Call& call : calls) {
    const FrameTable::Info& after = frames[call.after];
    // After the last call of a rule nothing is left to do there, so that lists need no stack.
    const bool last = after.may_end && !after.may_go_on;
    const Node onto = last ? kOpen : MakeNode(call.after, kOpen);
    if (!AppendStep(call.first, byte_class, onto, next)) return false;
  }
  return true;
}

bool Automaton::AppendStep(Frame frame, uint8_t byte_class, Node onto, Found* next) {
  const Config from = Only({kOpen, frame});
  const Config config = Step(from, byte_class);
  ++next->work;
  // Of several the most, and no sum: each is made once, however many ways lead to it.
  next->within = std::max(next->within, HeavyWorkOf(from, byte_class));
  if (config == kDead) return next->work <= kMostStepWork;
  if (config == kTooMany) return false;
  for (const Group& group : Groups(config)) {
    ++next->work;
    next->groups.push_back({Rebase(group.node, onto, &next->work), group.frame});
  }
  return next->work <= kMostStepWork;
}

Automaton::Config Automaton::Normalize(std::vector<Group> groups) {
  // From the newest node on: the one below a node is always older.
  std::make_heap(groups.begin(), groups.end());
  std::vector<Group> done;
  std::vector<Frame> frames;
  size_t states = 0;
  while (!groups.empty()) {
    const Node node = groups.front().node;
    frames.clear();
    while (!groups.empty() && groups.front().node == node) {
      frames.push_back(groups.front().frame);
      std::pop_heap(groups.begin(), groups.end());
      groups.pop_back();
    }
    MergeFrames(&frames);
    bool may_end = false;
    for (const Frame frame : frames) {
      const FrameTable::Info& info = t_->frames[frame];
      may_end = may_end || info.may_end;
      if (!info.may_go_on && node > kOpen) continue;  // its end is all that matters of it
      states += info.states;
      done.push_back({node, frame});
    }
    if (may_end && node > kOpen) {
      groups.push_back({BelowOf(node), AfterOf(node)});
      std::push_heap(groups.begin(), groups.end());
    }
    if (done.size() > kMostGroups || states > kMostStates) return kTooMany;
  }
  if (done.empty()) return kDead;
  std::sort(done.begin(), done.end());
  return Intern(done);
}

// One frame for all that are sets of states, and each other one once.
void Automaton::MergeFrames(std::vector<Frame>* frames) {
  std::optional<Frame> merged;
  std::vector<Frame> others;
  for (const Frame frame : *frames) {
    if (t_->frames[frame].has_states) {
      merged = merged.has_value() ? t_->frames.Union(*merged, frame) : frame;
    } else {
      others.push_back(frame);
    }
  }
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  *frames = std::move(others);
  if (merged.has_value()) frames->push_back(*merged);
}

Automaton::Config Automaton::Intern(absl::Span<const Group> groups) {
  std::vector<uint32_t> words;
  words.reserve(2 * groups.size());
  Info info;
  for (const Group& group : groups) {
    words.push_back(group.node);
    words.push_back(group.frame);
    const FrameTable::Info& frame = t_->frames[group.frame];
    info.states += frame.states;
    info.can_end = info.can_end || (group.node == kBottom && frame.may_end);
    info.may_leave = info.may_leave || (group.node == kOpen && frame.may_end);
    info.may_go_on = info.may_go_on || frame.may_go_on;
  }
  const Config config = t_->configs.Intern(words);
  if (config == t_->infos.size()) t_->infos.push_back(info);
  return config;
}

size_t Automaton::bytes() const {
  return t_->frames.bytes() + t_->nodes.bytes() + t_->configs.bytes() +
         t_->heavy.size() * 4 * sizeof(uint64_t) + t_->infos.capacity() * sizeof(Info) +
         t_->rows.size() * kBlock * classes_ * sizeof(Config);
}

void Automaton::Compact(absl::Span<Config* const> configs) {
  // What is needed of the old tables; numbers are given anew in the old order.
  std::vector<bool> nodes(t_->nodes.size() + 2);
  nodes[kBottom] = nodes[kOpen] = true;
  std::vector<Frame> frames;
  for (const Config* config : configs) {
    for (const Group& group : Groups(*config)) {
      frames.push_back(group.frame);
      for (Node node = group.node; !nodes[node]; node = BelowOf(node)) {
        nodes[node] = true;
        frames.push_back(AfterOf(node));
      }
    }
  }
  std::sort(frames.begin(), frames.end());
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  ++epoch_;
  const std::unique_ptr<Tables> old = std::exchange(t_, std::make_unique<Tables>(grammar_));
  std::vector<Frame> new_frame(old->frames.size());
  for (const Frame frame : frames) new_frame[frame] = t_->frames.CopyFrom(old->frames, frame);
  std::vector<Node> new_node = {kBottom, kOpen};
  new_node.resize(nodes.size());
  for (Node node = 2; node < nodes.size(); ++node) {
    const absl::Span<const uint32_t> words = old->nodes[node - 2];
    if (nodes[node]) new_node[node] = MakeNode(new_frame[words[0]], new_node[words[1]]);
  }
  for (Config* config : configs) {
    const absl::Span<const uint32_t> words = old->configs[*config];
    std::vector<Group> groups;
    for (size_t i = 0; i < words.size(); i += 2) {
      groups.push_back({new_node[words[i]], new_frame[words[i + 1]]});
    }
    *config = Intern(groups);
  }
}

}  // namespace inlay
