#include "gemma_like/grammar/utf8_machine.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace inlay {
namespace {

constexpr uint32_t kNoState = std::numeric_limits<uint32_t>::max();
constexpr uint8_t kContinuation = 0x80;

// The code points that the first byte may belong to, by the number of bytes that follow it.
struct Length {
  uint32_t first, last;
  uint8_t lead;  // first byte of code point 0, if it were written so long
};
constexpr std::array<Length, 4> kLengths = {Length{0, 0x7F, 0}, Length{0x80, 0x7FF, 0xC0},
                                            Length{0x800, 0xFFFF, 0xE0},
                                            Length{0x10000, 0x10FFFF, 0xF0}};

class Maker {
 public:
  explicit Maker(absl::Span<const CodePointRange> ranges) {
    for (const CodePointRange& range : ranges) {
      assert(range.first <= range.last);
      assert(&range == ranges.data() || range.first > (&range - 1)->last);
      Add(range.first, std::min<uint32_t>(range.last, 0xD7FF));
      Add(std::max<uint32_t>(range.first, 0xE000), std::min<uint32_t>(range.last, 0x10FFFF));
    }
    machine_.edges.emplace_back();  // kEnd
  }

  Utf8Machine Make() && {
    std::map<uint32_t, ByteSet> targets;
    for (uint32_t rest = 0; rest < kLengths.size(); ++rest) {
      const Length& length = kLengths[rest];
      const uint32_t unit = uint32_t{1} << 6 * rest;
      for (uint32_t lead = length.first / unit; lead <= length.last / unit; ++lead) {
        const uint32_t first = std::max(lead * unit, length.first);
        const uint32_t target = After(rest, lead * unit, first);
        if (target != kNoState) targets[target].set(length.lead + lead);
      }
    }
    if (!targets.empty()) machine_.start = State(targets);
    return std::move(machine_);
  }

 private:
  void Add(uint32_t first, uint32_t last) {
    if (first <= last) ranges_.push_back({first, last});
  }

  // The state that `rest` continuation bytes lead from to the code points `base` + [0, 64^rest)
  // that are in the ranges and not below `first`.
  uint32_t After(uint32_t rest, uint32_t base, uint32_t first) {
    const uint32_t last = base + (uint32_t{1} << 6 * rest) - 1;
    const auto range =
        std::lower_bound(ranges_.begin(), ranges_.end(), first,
                         [](const CodePointRange& r, uint32_t c) { return r.last < c; });
    if (range == ranges_.end() || range->first > last) return kNoState;
    if (rest == 0) return Utf8Machine::kEnd;
    const bool whole = first == base && range->first <= base && range->last >= last;
    if (whole && whole_[rest] != kNoState) return whole_[rest];
    std::map<uint32_t, ByteSet> targets;
    const uint32_t unit = uint32_t{1} << 6 * (rest - 1);
    for (uint32_t i = 0; i < 64; ++i) {
      if (base + (i + 1) * unit <= first) continue;
      const uint32_t target = After(rest - 1, base + i * unit, std::max(first, base + i * unit));
      if (target != kNoState) targets[target].set(kContinuation + i);
    }
    const uint32_t state = targets.empty() ? kNoState : State(targets);
    if (whole) whole_[rest] = state;
    return state;
  }

  // The state with these edges.
  uint32_t State(const std::map<uint32_t, ByteSet>& targets) {
    std::vector<std::pair<uint32_t, std::string>> key;
    for (const auto& [target, bytes] : targets) key.emplace_back(target, bytes.to_string());
    const auto [at, is_new] =
        states_.emplace(std::move(key), static_cast<uint32_t>(machine_.edges.size()));
    if (is_new) {
      machine_.edges.emplace_back();
      for (const auto& [target, bytes] : targets) {
        machine_.edges.back().push_back({bytes, target});
      }
    }
    return at->second;
  }

  std::vector<CodePointRange> ranges_;
  Utf8Machine machine_;
  std::array<uint32_t, 4> whole_ = {kNoState, kNoState, kNoState,
                                    kNoState};  // all code points, by `rest`
  std::map<std::vector<std::pair<uint32_t, std::string>>, uint32_t> states_;
};

}  // namespace

Utf8Machine MakeUtf8Machine(absl::Span<const CodePointRange> ranges) {
  return Maker(ranges).Make();
}

}  // namespace inlay
