#include "gemma_like/grammar/object_rule.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/utf8.h"

namespace inlay {
namespace {

constexpr absl::string_view kSpace = " \t\n\r";

bool IsSpace(uint8_t byte) { return kSpace.find(static_cast<char>(byte)) != kSpace.npos; }

}  // namespace

absl::StatusOr<ObjectRule> ObjectRule::Create(GrammarObject object) {
  ObjectRule rule(std::move(object));
  const absl::Status status = rule.MakeTrie();
  if (!status.ok()) return status;
  return rule;
}

absl::Status ObjectRule::MakeTrie() {
  std::vector<std::string> spellings;
  for (const GrammarMember& member : object_.members) {
    if (!IsValidUtf8(member.name)) {
      return absl::InvalidArgumentError(
          absl::StrCat("the name ", QuoteForMessage(member.name), " is not UTF-8"));
    }
    const std::string spelling = JsonSpelling(member.name);
    spellings.push_back(spelling.substr(1, spelling.size() - 2));
    by_name_.push_back(static_cast<uint32_t>(by_name_.size()));
    required_ += member.required;
  }
  std::sort(by_name_.begin(), by_name_.end(),
            [&](uint32_t a, uint32_t b) { return spellings[a] < spellings[b]; });
  nodes_.push_back({.last = members()});
  for (uint32_t i = 0; i < members(); ++i) {
    uint32_t node = 0;
    for (const char c : spellings[by_name_[i]]) node = AddChild(node, static_cast<uint8_t>(c), i);
    if (nodes_[node].member.has_value()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "the name ", QuoteForMessage(object_.members[by_name_[i]].name), " is listed twice"));
    }
    nodes_[node].member = by_name_[i];
  }
  return absl::OkStatus();
}

// The child of `node` with this byte, which gets the name as its last one.
uint32_t ObjectRule::AddChild(uint32_t node, uint8_t byte, uint32_t name) {
  // Names come in order, so that only the newest child can have the byte.
  uint32_t child = nodes_[node].child;
  if (child == 0 || nodes_[child].byte != byte) {
    const auto within = JsonSpellingReader::Next(nodes_[node].within, byte);
    assert(within.has_value());
    nodes_.push_back({byte, *within, name, name, child});
    child = static_cast<uint32_t>(nodes_.size() - 1);
    nodes_[node].child = child;
  }
  nodes_[child].last = name + 1;
  return child;
}

bool ObjectRule::IsProductive(size_t usable, bool other) const {
  return required_ <= object_.most && object_.least <= object_.most &&
         (other || usable >= object_.least);
}

void ObjectRule::SetProductive(const std::vector<bool>& rules) {
  other_ = object_.other.has_value() && rules[*object_.other];
  const uint32_t n = members();
  usable_.resize(n);
  required_from_.assign(n + 1, 0);
  usable_from_.assign(n + 1, 0);
  for (uint32_t i = n; i-- > 0;) {
    usable_[i] = rules[object_.members[i].value];
    required_from_[i] = required_from_[i + 1] + object_.members[i].required;
    usable_from_[i] = usable_from_[i + 1] + usable_[i];
  }
}

void ObjectRule::AppendByteSets(std::vector<ByteSet>* sets) const {
  for (const char c : absl::string_view("{}\":, \t\n\r")) {
    sets->push_back(ByteSet().set(static_cast<uint8_t>(c)));
  }
  for (const Node& node : nodes_) sets->push_back(ByteSet().set(node.byte));
  if (!object_.other.has_value()) return;
  using Reader = JsonSpellingReader;
  for (Reader::State from = 0; from < Reader::kStates; ++from) {
    std::vector<ByteSet> to(Reader::kStates);
    for (int byte = 0; byte < 256; ++byte) {
      if (const auto next = Reader::Next(from, static_cast<uint8_t>(byte))) to[*next].set(byte);
    }
    sets->insert(sets->end(), to.begin(), to.end());
  }
}

ObjectRule::State ObjectRule::Start() const {
  State state(kSeen + (object_.in_order ? 1 : (members() + 31) / 32));
  state[kPhase] = kOpen;
  if (!object_.in_order) {
    state[kMissing] = static_cast<uint32_t>(required_from_[0]);
    state[kAvailable] = static_cast<uint32_t>(usable_from_[0]);
  }
  return state;
}

bool ObjectRule::Seen(const State& state, uint32_t member) const {
  if (object_.in_order) return member < state[kSeen];
  return (state[kSeen + member / 32] >> member % 32 & 1) != 0;
}

ObjectRule::Progress ObjectRule::ProgressOf(const State& state) const {
  Progress progress{uint64_t{state[kPairsHigh]} << 32 | state[kPairsLow], 0, 0};
  if (object_.in_order) {
    progress.missing = required_from_[state[kSeen]];
    progress.available = usable_from_[state[kSeen]];
    return progress;
  }
  progress.missing = state[kMissing];
  progress.available = state[kAvailable];
  return progress;
}

ObjectRule::Progress ObjectRule::After(Progress progress, uint32_t member) const {
  ++progress.pairs;
  if (object_.in_order) {
    const uint32_t next = member == kUnlisted ? members() : member + 1;
    progress.missing = required_from_[next];
    progress.available = usable_from_[next];
  } else if (member != kUnlisted) {
    progress.missing -= object_.members[member].required;
    --progress.available;
  }
  return progress;
}

bool ObjectRule::CanFinish(const Progress& progress) const {
  return progress.pairs + progress.missing <= object_.most &&
         (other_ || progress.pairs + progress.available >= object_.least);
}

bool ObjectRule::MayCome(const State& state, const Progress& progress, uint32_t member) const {
  if (member == kUnlisted ? !other_ : !usable_[member] || Seen(state, member)) return false;
  if (object_.in_order) {
    const uint64_t later = member == kUnlisted ? 0 : required_from_[member];
    if (required_from_[state[kSeen]] > later) return false;  // a required name would be skipped
  }
  return CanFinish(After(progress, member));
}

bool ObjectRule::AnyMayCome(const State& state, uint32_t first, uint32_t last) const {
  const Progress progress = ProgressOf(state);
  if (MayCome(state, progress, kUnlisted)) return true;
  return std::any_of(by_name_.begin() + first, by_name_.begin() + last,
                     [&](uint32_t member) { return MayCome(state, progress, member); });
}

bool ObjectRule::MayClose(const State& state) const {
  const Progress progress = ProgressOf(state);
  return progress.missing == 0 && progress.pairs >= object_.least;
}

std::optional<ObjectRule::State> ObjectRule::Step(const State& state, uint8_t byte) const {
  if (state[kPhase] == kDone) return std::nullopt;
  if (state[kPhase] == kName) return StepName(state, byte);
  return StepBetween(state, byte);
}

// Outside names and values.
std::optional<ObjectRule::State> ObjectRule::StepBetween(const State& state, uint8_t byte) const {
  if (IsSpace(byte)) return StepSpace(state, byte);
  const uint32_t phase = state[kPhase];
  const bool after_space = state[kSpaces] > 0 && object_.space == JsonSpace::kSerialized;
  if (byte == '}') {
    const bool empty = phase == kFirst && !after_space;
    if ((!empty && phase != kAfterValue) || !MayClose(state)) return std::nullopt;
    return State{kDone};
  }
  State next = state;
  next[kSpaces] = 0;
  if (byte == '{' && phase == kOpen) {
    next[kPhase] = kFirst;
  } else if (byte == '"' && (phase == kFirst || phase == kNext)) {
    next[kPhase] = kName;
  } else if (byte == ':' && phase == kColon) {
    next[kPhase] = kValue;
  } else if (byte == ',' && phase == kAfterValue && !after_space) {
    next[kPhase] = kNext;
  } else {
    return std::nullopt;
  }
  // Before a name: is there one?
  if ((byte == '"' || byte == ',') && !AnyMayCome(state, 0, members())) return std::nullopt;
  return next;
}

std::optional<ObjectRule::State> ObjectRule::StepSpace(const State& state, uint8_t byte) const {
  const uint32_t so_far = state[kSpaces];
  if (so_far == 0 && !MayHaveSpace(state)) return std::nullopt;
  State next = state;
  ++next[kSpaces];
  if (object_.space == JsonSpace::kAny) {
    if (so_far >= kMostJsonSpace) return std::nullopt;
  } else if (so_far == 0) {
    const bool line_end = byte == '\n' && state[kPhase] != kValue;
    if (!line_end && byte != ' ') return std::nullopt;
    next[kSpaces] = line_end ? kLineEnd : kOneSpace;
  } else if (byte == ' ') {
    if (so_far < kLineEnd || so_far >= kLineEnd + kMostIndent) return std::nullopt;
  } else {
    const bool first = so_far == kLineEnd;
    const bool more = so_far > kTabs && so_far < kTabs + kMostIndentTabs;
    if (byte != '\t' || (!first && !more)) return std::nullopt;
    if (first) next[kSpaces] = kTabs + 1;
  }
  return next;
}

bool ObjectRule::MayHaveSpace(const State& state) const {
  const uint32_t phase = state[kPhase];
  if (object_.space == JsonSpace::kAny) return phase != kOpen;
  // After white space must come what it stands before: a name, not '}', or '}', not ','.
  if (phase == kFirst) return AnyMayCome(state, 0, members());
  if (phase == kAfterValue) return MayClose(state);
  return phase == kValue || phase == kNext;
}

std::optional<ObjectRule::State> ObjectRule::StepName(const State& state, uint8_t byte) const {
  const uint32_t position = state[kPosition];
  const bool listed = position < kUnlisted;
  const JsonSpellingReader::State within = listed ? nodes_[position].within : position - kUnlisted;
  if (byte == '"' && within == JsonSpellingReader::kBetween) {
    return EndName(state, listed ? nodes_[position].member.value_or(kUnlisted) : kUnlisted);
  }
  State next = state;
  for (uint32_t child = listed ? nodes_[position].child : 0; child != 0;
       child = nodes_[child].sibling) {
    if (nodes_[child].byte != byte) continue;
    next[kPosition] = child;
    if (!AnyMayCome(state, nodes_[child].first, nodes_[child].last)) return std::nullopt;
    return next;
  }
  const auto after = JsonSpellingReader::Next(within, byte);
  if (!after.has_value() || (listed && !AnyMayCome(state, 0, 0))) return std::nullopt;
  next[kPosition] = kUnlisted + *after;
  return next;
}

std::optional<ObjectRule::State> ObjectRule::EndName(const State& state, uint32_t member) const {
  const Progress now = ProgressOf(state);
  if (!MayCome(state, now, member)) return std::nullopt;
  State next = state;
  next[kPhase] = kColon;
  next[kPosition] = member;
  // Beyond what matters, objects need not be told apart by their pairs.
  const uint64_t pairs = object_.most == std::numeric_limits<size_t>::max()
                             ? std::min<uint64_t>(now.pairs + 1, object_.least)
                             : now.pairs + 1;
  next[kPairsLow] = static_cast<uint32_t>(pairs);
  next[kPairsHigh] = static_cast<uint32_t>(pairs >> 32);
  if (object_.in_order) {
    next[kSeen] = member == kUnlisted ? members() : member + 1;
  } else if (member != kUnlisted) {
    next[kSeen + member / 32] |= uint32_t{1} << member % 32;
    next[kMissing] -= object_.members[member].required;
    --next[kAvailable];
  }
  return next;
}

std::optional<ObjectRule::Value> ObjectRule::Call(const State& state) const {
  if (state[kPhase] != kValue) return std::nullopt;
  const uint32_t member = state[kPosition];
  Value value{member == kUnlisted ? *object_.other : object_.members[member].value, state};
  value.after[kPhase] = kAfterValue;
  value.after[kPosition] = 0;
  value.after[kSpaces] = 0;
  return value;
}

}  // namespace inlay
