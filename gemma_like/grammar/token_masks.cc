#include "gemma_like/grammar/token_masks.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/xxh64.h"

namespace inlay {
namespace {

void Set(absl::Span<const int32_t> tokens, TokenBits* bits) {
  for (const int32_t token : tokens) (*bits)[token / 64] |= uint64_t{1} << token % 64;
}

void Clear(absl::Span<const int32_t> tokens, TokenBits* bits) {
  for (const int32_t token : tokens) (*bits)[token / 64] &= ~(uint64_t{1} << token % 64);
}

void Add(const TokenBits& more, TokenBits* bits) {
  for (size_t i = 0; i < more.size(); ++i) (*bits)[i] |= more[i];
}

}  // namespace

absl::Status TooAmbiguous() {
  return absl::ResourceExhaustedError(
      absl::StrCat("the grammar is too ambiguous: there are more than ", Automaton::kMostGroups,
                   " ways to read a text, more than ", Automaton::kMostStates,
                   " states in them, or too many of these for the tokens that may come next"));
}

TokenMasks::TokenMasks(Automaton& automaton, const TokenTrie& trie, absl::Span<const int32_t> ends,
                       size_t state_bytes, size_t cache_bytes)
    : automaton_(automaton),
      trie_(trie),
      ends_(ends.begin(), ends.end()),
      state_bytes_(state_bytes),
      cache_bytes_(cache_bytes),
      plain_steps_(automaton) {}

absl::StatusOr<std::shared_ptr<const TokenBits>> TokenMasks::Of(Config* config) {
  std::shared_ptr<const Mask> mask = Find(2 * uint64_t{*config});
  if (mask == nullptr) {
    INLAY_ASSIGN_OR_RETURN(mask, MaskOf(config));
  }
  return std::shared_ptr<const TokenBits>(mask->shared, &mask->shared->bits);
}

absl::StatusOr<std::shared_ptr<const TokenMasks::Mask>> TokenMasks::MaskOf(Config* config) {
  Mask mask(trie_.words());
  const size_t groups = automaton_.Groups(*config).size();
  for (size_t i = 0; i < groups; ++i) {
    INLAY_RETURN_IF_ERROR(AddGroup(i, config, &mask));
  }
  (automaton_.CanEnd(*config) ? Set : Clear)(ends_, &mask.bits());
  return Keep(2 * uint64_t{*config}, std::move(mask));
}

absl::Status TokenMasks::AddGroup(size_t index, Config* config, Mask* mask) {
  const auto group = [&] { return automaton_.Groups(*config)[index]; };  // numbers may change
  INLAY_ASSIGN_OR_RETURN(const std::shared_ptr<const Mask> of_frame,
                         FrameMask(group().frame, config));
  mask->work += of_frame->work;
  if (mask->work > kMostWork) return TooAmbiguous();
  Add(of_frame->shared->bits, &mask->bits());
  if (group().node <= Automaton::kOpen) return absl::OkStatus();
  if (of_frame->leaves.empty() && !of_frame->leaves_plain) return absl::OkStatus();
  Walk walk{.mask = mask, .keep = {config}, .path = {automaton_.Leave(group().node)}};
  if (walk.path[0] == Automaton::kTooMany) return TooAmbiguous();
  for (const Leaf& leaf : of_frame->leaves) {
    INLAY_RETURN_IF_ERROR(WalkPart(*leaf.part, leaf.node, &walk));
  }
  if (!of_frame->leaves_plain) return absl::OkStatus();
  if (plain_steps_.Step(walk.path[0], &mask->work) == Automaton::kDead) return absl::OkStatus();
  // What follows accepts plain characters too.
  walk.path = {automaton_.Only(group())};
  const PlainRun run = FindPlainRun(walk.path[0], &mask->work);
  if (mask->work > kMostWork) return TooAmbiguous();
  return AddPlain(run, &walk);
}

absl::StatusOr<std::shared_ptr<const TokenMasks::Mask>> TokenMasks::FrameMask(
    Automaton::Frame frame, Config* keep) {
  const Config config = automaton_.Only({Automaton::kOpen, frame});
  if (auto mask = Find(2 * uint64_t{config} + 1)) return mask;
  Mask mask(trie_.words());
  Walk walk{.mask = &mask, .keep = {keep}, .path = {config}};
  INLAY_RETURN_IF_ERROR(AddAll(&walk));
  return Keep(2 * uint64_t{walk.path[0]} + 1, std::move(mask));
}

absl::Status TokenMasks::AddAll(Walk* walk) {
  PlainRun run = FindPlainRun(walk->path[0], &walk->mask->work);
  INLAY_RETURN_IF_ERROR(AddPlain(run, walk));
  if (!run.alike || run.leaves) return WalkPart(trie_.others(), 0, walk);
  const size_t kept = walk->keep.size();
  for (Config& config : run.configs) walk->keep.push_back(&config);
  for (size_t i = 0; i < run.configs.size(); ++i) {
    walk->path = {run.configs[i]};
    INLAY_RETURN_IF_ERROR(WalkPart(trie_.after_plain(i), 0, walk));
  }
  walk->path = {run.configs[0]};
  walk->keep.resize(kept);
  return absl::OkStatus();
}

absl::Status TokenMasks::WalkPart(const Part& part, uint32_t from, Walk* walk) {
  for (uint32_t i = from + 1; i < part.nodes[from].skip;) {
    const TokenTrie::Node& node = part.nodes[i];
    if (!Step(node.byte, node.depth - part.nodes[from].depth, walk)) return TooAmbiguous();
    const Config config = walk->path.back();
    if (config == Automaton::kDead) {
      i = node.skip;
      continue;
    }
    Set(part.TokensOf(i), &walk->mask->bits());
    if (automaton_.MayLeave(config) && node.skip > i + 1) walk->mask->leaves.push_back({&part, i});
    ++i;
  }
  walk->path.resize(1);
  return absl::OkStatus();
}

TokenMasks::PlainRun TokenMasks::FindPlainRun(Config config, uint64_t* work) {
  PlainRun run;
  run.configs.push_back(config);
  while (run.configs.size() <= TokenTrie::kMostPlain) {
    const Config next = plain_steps_.Step(run.configs.back(), work);
    run.alike = next != PlainSteps::kDiffer && *work <= kMostWork;
    if (!run.alike || next == Automaton::kDead) break;
    run.leaves = run.leaves || automaton_.MayLeave(next);
    run.configs.push_back(next);
  }
  return run;
}

absl::Status TokenMasks::AddPlain(const PlainRun& run, Walk* walk) {
  if (!run.alike) return WalkPlain(walk);
  Add(trie_.PlainUpTo(run.configs.size() - 1), &walk->mask->bits());
  walk->mask->leaves_plain = run.leaves;
  return absl::OkStatus();
}

// Where most tokens are accepted, starts with all of them.
absl::Status TokenMasks::WalkPlain(Walk* walk) {
  const Part& part = trie_.plain();
  Mask& mask = *walk->mask;
  const bool most = MostAreLoops(walk);
  TokenBits bits = most ? trie_.PlainUpTo(TokenTrie::kMostPlain) : TokenBits(trie_.words());
  for (uint32_t i = 1; i < part.end();) {
    const TokenTrie::Node& node = part.nodes[i];
    if (!Step(node.byte, node.depth, walk)) return TooAmbiguous();
    const Config config = walk->path.back();
    const bool dead = config == Automaton::kDead;
    mask.leaves_plain = mask.leaves_plain || (!dead && automaton_.MayLeave(config));
    const bool alike =
        dead || (node.whole && node.skip > i + 1 && plain_steps_.IsLoop(config, &mask.work));
    if (dead && most) Clear(part.TokensUnder(i), &bits);
    if (!dead && !most) Set(alike ? part.TokensUnder(i) : part.TokensOf(i), &bits);
    i = alike ? node.skip : i + 1;
  }
  walk->path.resize(1);
  Add(bits, &mask.bits());
  return absl::OkStatus();
}

// Whether after most plain tokens' first characters all plain characters are accepted.
bool TokenMasks::MostAreLoops(Walk* walk) {
  const Part& part = trie_.plain();
  size_t tokens = 0;
  for (uint32_t i = 1; i < part.end(); i = part.nodes[i].skip) {
    const uint8_t byte_class = automaton_.grammar().class_of[part.nodes[i].byte];
    const Config config = automaton_.Step(walk->path[0], byte_class);
    if (config == Automaton::kDead || config == Automaton::kTooMany) continue;
    if (walk->mask->work > kMostWork) return false;  // the next step finds that
    if (!part.nodes[i].whole || !plain_steps_.IsLoop(config, &walk->mask->work)) continue;
    tokens += part.TokensUnder(i).size();
  }
  return 2 * tokens > part.tokens.size();
}

bool TokenMasks::Step(uint8_t byte, size_t depth, Walk* walk) {
  // Here, between steps, all numbers that are in use are in `walk`.
  if (++steps_ % 256 == 0) LimitMemory(walk, depth);
  const Config from = walk->path[depth - 1];
  const uint8_t byte_class = automaton_.grammar().class_of[byte];
  const Config config = automaton_.Step(from, byte_class);
  if (config == Automaton::kTooMany) return false;
  walk->path.resize(depth);
  walk->path.push_back(config);
  walk->mask->work += 1 + automaton_.HeavyWorkOf(from, byte_class) +
                      (config == Automaton::kDead ? 0 : automaton_.StatesOf(config));
  return walk->mask->work <= kMostWork;
}

void TokenMasks::LimitMemory(Walk* walk, size_t depth) {
  if (automaton_.bytes() <= state_bytes_) return;
  walk->path.resize(depth);
  std::vector<Config*> used = walk->keep;
  for (Config& config : walk->path) used.push_back(&config);
  automaton_.Compact(used);
}

std::shared_ptr<const TokenMasks::Mask> TokenMasks::Find(uint64_t key) {
  if (epoch_ != automaton_.epoch()) return nullptr;
  const auto place = places_.find(key);
  if (place == places_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, place->second);
  return kept_.front().second;
}

std::shared_ptr<const TokenMasks::Mask> TokenMasks::Keep(uint64_t key, Mask mask) {
  if (epoch_ != automaton_.epoch()) {
    places_.clear();
    kept_.clear();
    shared_.clear();
    kept_bytes_ = 0;
    epoch_ = automaton_.epoch();
  }
  ShareBits(&mask);
  auto kept = std::make_shared<const Mask>(std::move(mask));
  kept_.emplace_front(key, kept);
  kept_bytes_ += kept->bytes();
  places_[key] = kept_.begin();
  while (kept_bytes_ > cache_bytes_ && !kept_.empty()) DropOldest();
  return kept;
}

void TokenMasks::ShareBits(Mask* mask) {
  const TokenBits& bits = mask->bits();
  mask->shared->hash = Xxh64Of(bits.data(), bits.size() * sizeof(bits[0]));
  mask->shared = *shared_.insert(mask->shared).first;
  if (++mask->shared->masks == 1) kept_bytes_ += bits.size() * sizeof(bits[0]);
}

void TokenMasks::DropOldest() {
  const std::shared_ptr<const Mask>& mask = kept_.back().second;
  kept_bytes_ -= mask->bytes();
  if (--mask->shared->masks == 0) {
    kept_bytes_ -= mask->shared->bits.size() * sizeof(mask->shared->bits[0]);
    shared_.erase(mask->shared);
  }
  places_.erase(kept_.back().first);
  kept_.pop_back();
}

}  // namespace inlay
