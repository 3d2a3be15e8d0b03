#include "ops/cpu/machine_limits.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "ops/cpu/cpu_probes.h"
#include "ops/cpu/cpu_target.h"
#include "ops/cpu/dot_probes.h"
#include "ops/cpu/large_pages.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

constexpr int kRepeats = 7;

// Results are stored here so that no loop is optimised away; seeds come from here so that none is
// computed at compile time.
std::atomic<float> sink = 0;
std::atomic<int32_t> source = 3;

template <class Rounds>
double BestRate(Team& team, const Rounds& rounds) {
  // Longer than a clock's step, shorter than a time slice. An emulator needs few rounds for that.
  constexpr double kLeastSeconds = 0.0005;
  // Of each thread: what a late thread has not begun the others compute.
  constexpr size_t kChunks = 8;
  size_t count = 125;
  double best = 0;
  for (int i = 0; i < kRepeats;) {
    std::atomic<double> operations = 0;
    const Clock::time_point start = Clock::now();
    team.Run(kChunks * team.threads(), 1, [&](const Share& share) {
      for (size_t chunk = share.begin; chunk < share.end; ++chunk) {
        float out = 0;
        operations += rounds(count, source.load(), &out) * static_cast<double>(count);
        sink = out;
      }
    });
    const double seconds = SecondsSince(start);
    if (seconds < kLeastSeconds) {
      count *= 2;
    } else {
      best = std::max(best, operations / seconds);
      ++i;
    }
  }
  return best;
}

// Chooses as ChosenTileKernels() chooses the kernels.
DotProbes ChosenDotProbes() {
  DotProbes probes = plain::GetDotProbes();
  switch (ChosenExtension()) {
    case Extension::kNone:
      break;
    case Extension::kVnni:
      probes.int8 = vnni::GetDotProbes().int8;
      break;
    case Extension::kAmx:
      probes.int8 = amx::GetDotProbes().int8;
      probes.bf16 = amx::GetDotProbes().bf16;
      break;
    case Extension::kDotprod:
      probes.int8 = dotprod::GetDotProbes().int8;
      break;
    case Extension::kI8mm:
      probes.int8 = i8mm::GetDotProbes().int8;
      probes.bf16 = i8mm::GetDotProbes().bf16;
      break;
  }
  return probes;
}

}  // namespace

double MeasureReadBandwidth(Team& team, size_t bytes) {
  const size_t allocated = LargePageBytes(std::max(bytes, size_t{1}));
  const size_t words = allocated / sizeof(uint64_t);
  struct Free {
    void operator()(uint64_t* p) const { std::free(p); }
  };
  // As packed matrices do: what is measured is memory, not address translation.
  std::unique_ptr<uint64_t[], Free> data(static_cast<uint64_t*>(AllocateLargePages(allocated)));
  if (data == nullptr) return 0;
  constexpr size_t kChunk = (size_t{1} << 20) / sizeof(uint64_t);
  team.Run(words, kChunk, [&](const Share& share) {
    std::fill(&data[share.begin], &data[share.end], uint64_t{1});
  });
  // Which pattern is fastest differs from machine to machine.
  struct Pattern {
    size_t streams, ahead;
  };
  constexpr Pattern kPatterns[] = {{1, 0}, {2, 0}, {4, 0}, {8, 0}, {1, 2048}, {2, 2048}, {4, 1024}};
  constexpr double kSecondsEach = 0.05;
  constexpr int kLeastPasses = 3;
  double best = 0;
  for (const Pattern& pattern : kPatterns) {
    std::atomic<uint64_t> sum;
    const auto read = [&](const Share& share) {
      sum += ProbeSumOfWords(&data[share.begin], share.end - share.begin, pattern.streams,
                             pattern.ahead);
    };
    const Clock::time_point begin = Clock::now();
    for (int i = 0; i < kLeastPasses || SecondsSince(begin) < kSecondsEach; ++i) {
      sum = 0;
      const Clock::time_point start = Clock::now();
      team.Run(words, kChunk, read);
      const double seconds = SecondsSince(start);
      if (sum != words) return 0;  // all words are 1: something was left out
      best = std::max(best, static_cast<double>(allocated) / seconds);
    }
  }
  return best;
}

const char* DotName(Dot dot) {
  return dot == Dot::kInt8 ? "int8" : dot == Dot::kBF16 ? "bf16" : "f32";
}

Dot DotOf(WeightType type) {
  switch (type) {
    case WeightType::kF32:
    case WeightType::kF16:
      return Dot::kF32;
    case WeightType::kBF16:
      return Dot::kBF16;
    default:
      return Dot::kInt8;
  }
}

DotPeaks MeasureDotPeaks(size_t threads, std::string_view target) {
  // More would only wait for each other.
  Team team(std::min(threads, std::max<size_t>(1, std::thread::hardware_concurrency())));
  const std::string chosen = ChosenTarget();
  const bool runs = ForceTarget(target);
  assert(runs);
  (void)runs;
  const DotProbes probes = ChosenDotProbes();
  const DotPeaks peaks = {.int8 = BestRate(team, probes.int8),
                          .bf16 = BestRate(team, probes.bf16),
                          .f32 = BestRate(team, probes.f32)};
  ForceTarget(chosen);
  return peaks;
}

}  // namespace inlay
