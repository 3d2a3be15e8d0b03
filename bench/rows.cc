// Main program of the ops' microbenchmark: measures the limits, then runs the rows.
#include "bench/rows.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string_view>

#include "ops/cpu/cpu_target.h"
#include "ops/cpu/machine_limits.h"

namespace inlay {
namespace {

using Clock = std::chrono::steady_clock;

struct Limits {
  std::vector<std::string> targets;
  std::vector<size_t> threads;
  std::map<size_t, double> read;  // bytes per second, by threads
  DotPeaks peaks;                 // of one core, on the best target
};

Limits& GetLimits() {
  static auto& limits = *new Limits;
  return limits;
}

// The words of --name=a,b,c.
bool TakeFlag(std::string_view argument, std::string_view name, std::vector<std::string>& words) {
  if (argument.substr(0, name.size()) != name) return false;
  words.clear();
  std::istringstream stream(std::string(argument.substr(name.size())));
  for (std::string word; std::getline(stream, word, ',');) words.push_back(word);
  return true;
}

int Usage(const char* program, std::string_view wrong) {
  std::fprintf(stderr,
               "%.*s is no flag here; %s [--targets=AVX2,...] [--threads=1,2] [--benchmark_...]\n",
               static_cast<int>(wrong.size()), wrong.data(), program);
  return 2;
}

// Measures what the rows are held against, and tells the reader of the output.
void Measure(Limits& limits) {
  for (size_t threads : limits.threads) {
    Team team(threads);
    limits.read[threads] = MeasureReadBandwidth(team);
    benchmark::AddCustomContext("read_bytes_per_second/threads:" + std::to_string(threads),
                                std::to_string(limits.read[threads]));
  }
  limits.peaks = MeasureDotPeaks();
  for (const std::string& target : limits.targets) {
    const DotPeaks peaks = MeasureDotPeaks(target);
    const auto tell = [&](const char* type, double peak) {
      benchmark::AddCustomContext(std::string(type) + "_ops_per_second_of_one_core/" + target,
                                  std::to_string(peak));
    };
    tell("int8", peaks.int8);
    tell("bf16", peaks.bf16);
    tell("f32", peaks.f32);
  }
}

int Main(int argc, char** argv) {
  Limits& limits = GetLimits();
  limits.targets = RunnableTargets();
  std::vector<std::string> threads = {"1"};
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!TakeFlag(argv[i], "--targets=", limits.targets) &&
        !TakeFlag(argv[i], "--threads=", threads)) {
      return Usage(argv[0], argv[i]);
    }
  }
  for (const std::string& word : threads) {
    const unsigned long count = std::strtoul(word.c_str(), nullptr, 10);
    if (count < 1 || count > 1024) return Usage(argv[0], "--threads=" + word);
    limits.threads.push_back(count);
  }
  for (const std::string& target : limits.targets) {
    if (!ForceTarget(target)) return Usage(argv[0], "--targets=" + target);
  }
  Measure(limits);
  AddMatMulRows();
  AddAttentionRows();
  AddSsdRows();
  AddDeltaRows();
  AddSmallRows();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace

void Row::Run(const Work& work, const std::function<void()>& call) {
  const Clock::time_point start = Clock::now();
  for (auto _ : state_) {
    call();
    benchmark::ClobberMemory();
  }
  const double calls = static_cast<double>(state_.iterations());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count() / calls;
  const Limits& limits = GetLimits();
  const double threads = static_cast<double>(team_.threads());
  const double least = std::max(work.bytes / limits.read.at(team_.threads()),
                                work.ops / (threads * limits.peaks.Of(work.dot)));
  state_.counters["bytes_per_second"] = work.bytes / seconds;
  if (work.ops > 0) {
    state_.counters["ops_per_second"] = work.ops / seconds;
    state_.counters["ops_per_byte"] = work.ops / work.bytes;
  }
  state_.counters["percent_of_limit"] = 100 * least / seconds;
}

void AddRows(const std::string& name, std::function<void(Row&)> run) {
  const auto shared = std::make_shared<std::function<void(Row&)>>(std::move(run));
  for (const std::string& target : GetLimits().targets) {
    for (size_t threads : GetLimits().threads) {
      const std::string row_name = name + "/" + target + "/threads:" + std::to_string(threads);
      benchmark::RegisterBenchmark(row_name.c_str(),
                                   [=](benchmark::State& state) {
                                     ForceTarget(target);
                                     Row row(state, threads);
                                     (*shared)(row);
                                   })
          ->UseRealTime()
          ->MinTime(0.1);
    }
  }
}

std::vector<float> Values(size_t n) {
  std::vector<float> values(n);
  uint32_t state = 1;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

}  // namespace inlay

int main(int argc, char** argv) { return inlay::Main(argc, argv); }
