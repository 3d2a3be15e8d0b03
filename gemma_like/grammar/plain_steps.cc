#include "gemma_like/grammar/plain_steps.h"

#include <algorithm>
#include <bitset>
#include <optional>

namespace inlay {
namespace {

using Config = Automaton::Config;

// The classes that bytes from `first` to `last` belong to, without those of '"' and '\' themselves.
std::vector<uint8_t> ClassesOf(const Grammar& grammar, int first, int last) {
  std::bitset<256> found;
  for (int byte = first; byte <= last; ++byte) {
    if (byte != '"' && byte != '\\') found.set(grammar.class_of[byte]);
  }
  std::vector<uint8_t> classes;
  for (int i = 0; i < 256; ++i) {
    if (found.test(i)) classes.push_back(static_cast<uint8_t>(i));
  }
  return classes;
}

}  // namespace

// The well-formed sequences of the Unicode standard's table 3-7.
PlainSteps::PlainSteps(Automaton& automaton)
    : automaton_(automaton),
      ascii_(ClassesOf(automaton.grammar(), 0x20, 0x7E)),
      continuation_(ClassesOf(automaton.grammar(), 0x80, 0xBF)),
      epoch_(automaton.epoch()) {
  const auto add = [&](int first, int last, int from, int to, size_t more) {
    const Grammar& grammar = automaton_.grammar();
    leads_.push_back({ClassesOf(grammar, first, last), {ClassesOf(grammar, from, to), more}});
  };
  add(0xC2, 0xDF, 0x80, 0xBF, 0);
  add(0xE0, 0xE0, 0xA0, 0xBF, 1);
  add(0xE1, 0xEC, 0x80, 0xBF, 1);
  add(0xED, 0xED, 0x80, 0x9F, 1);
  add(0xEE, 0xEF, 0x80, 0xBF, 1);
  add(0xF0, 0xF0, 0x90, 0xBF, 2);
  add(0xF1, 0xF3, 0x80, 0xBF, 2);
  add(0xF4, 0xF4, 0x80, 0x8F, 2);
}

Config PlainSteps::Step(Config config, uint64_t* work) {
  if (epoch_ != automaton_.epoch()) {
    steps_.clear();
    epoch_ = automaton_.epoch();
  }
  auto at = steps_.find(config);
  if (at == steps_.end()) {
    work_ = 0;
    const Config next = Find(config);
    at = steps_.emplace(config, Found{next, work_}).first;
  }
  *work += at->second.work;
  return at->second.next;
}

bool PlainSteps::IsLoop(Config config, uint64_t* work) {
  // Most are not, which the first character shows.
  return automaton_.Step(config, ascii_[0]) == config && Step(config, work) == config;
}

Config PlainSteps::StepByte(Config config, uint8_t byte_class) {
  if (work_ > kMostWork) return kDiffer;
  const Config next = automaton_.Step(config, byte_class);
  work_ += automaton_.StatesOf(config) + automaton_.HeavyWorkOf(config, byte_class);
  return next;
}

Config PlainSteps::Find(Config config) {
  const Config next = After(config, ascii_, 0);
  if (next == kDiffer) return kDiffer;
  for (const Lead& lead : leads_) {
    for (const uint8_t byte_class : lead.bytes) {
      const Config within = StepByte(config, byte_class);
      if (within == kDiffer) return kDiffer;
      const Config after =
          within == Automaton::kDead ? within : After(within, lead.rest.first, lead.rest.more);
      if (after != next) return kDiffer;
    }
  }
  return next;
}

Config PlainSteps::After(Config config, const Classes& classes, size_t more) {
  std::optional<Config> common;
  Config last = Automaton::kDead;
  for (const uint8_t byte_class : classes) {
    const Config within = StepByte(config, byte_class);
    if (within == kDiffer) return kDiffer;
    if (common.has_value() && within == last) continue;  // as most bytes do
    last = within;
    const bool done = more == 0 || within == Automaton::kDead;
    const Config after = done ? within : After(within, continuation_, more - 1);
    if (after == kDiffer || (common.has_value() && after != *common)) return kDiffer;
    common = after;
  }
  return *common;
}

}  // namespace inlay
