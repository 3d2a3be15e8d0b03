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
  std::map<size_t, double> read;     // bytes per second, by threads
  std::map<size_t, DotPeaks> peaks;  // on the best target, by threads
  bool own_time = false;             // whether the caller says how long rows run
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

std::string Usage() {
  std::string targets;
  for (const std::string& target : RunnableTargets()) targets += " " + target;
  return "ops_bench [--targets=TARGET,...] [--threads=1,2,...] [--benchmark_...]\n"
         "--targets: of those that this CPU runs:" +
         targets + "; default: $INLAY_TARGET, else all\n--threads: 1 to 1024; default: 1\n";
}

int Refuse(const std::string& wrong) {
  std::fprintf(stderr, "ops_bench: '%s' is refused\n%s", wrong.c_str(), Usage().c_str());
  return 2;
}

// Whether an argument begins so.
bool Has(int argc, char** argv, std::string_view start) {
  return std::any_of(argv + 1, argv + argc,
                     [&](std::string_view word) { return word.starts_with(start); });
}

// Whether the caller wants the names of the rows alone.
bool ListsRows(int argc, char** argv) {
  return std::any_of(argv + 1, argv + argc, [](std::string_view word) {
    return word == "--benchmark_list_tests" || word == "--benchmark_list_tests=true";
  });
}

// Measures what the rows are held against, and tells the reader of the output.
void Measure(Limits& limits) {
  for (size_t threads : limits.threads) {
    const auto tell = [&](const std::string& name, double rate) {
      benchmark::AddCustomContext(name + "/threads:" + std::to_string(threads),
                                  std::to_string(rate));
    };
    Team team(threads);
    limits.read[threads] = MeasureReadBandwidth(team);
    tell("read_bytes_per_second", limits.read[threads]);
    limits.peaks[threads] = MeasureDotPeaks(threads);
    for (const std::string& target : limits.targets) {
      const DotPeaks peaks = MeasureDotPeaks(threads, target);
      tell("int8_ops_per_second/" + target, peaks.int8);
      tell("bf16_ops_per_second/" + target, peaks.bf16);
      tell("f32_ops_per_second/" + target, peaks.f32);
    }
  }
}

int Main(int argc, char** argv) {
  Limits& limits = GetLimits();
  limits.targets = RunnableTargets();
  if (limits.targets.empty()) {
    std::fputs("ops_bench: this program was compiled for other CPUs than this one\n", stderr);
    return 1;
  }
  if (const char* forced = std::getenv("INLAY_TARGET"); forced != nullptr && *forced != '\0')
    limits.targets.assign(1, forced);
  limits.own_time =
      Has(argc, argv, "--benchmark_min_time") || std::getenv("BENCHMARK_MIN_TIME") != nullptr;
  const bool lists_rows = ListsRows(argc, argv);
  std::vector<std::string> threads = {"1"};
  // Initialize adds its own flags and ends the program.
  if (Has(argc, argv, "--help")) std::fputs(Usage().c_str(), stdout);
  benchmark::Initialize(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (!TakeFlag(argv[i], "--targets=", limits.targets) &&
        !TakeFlag(argv[i], "--threads=", threads)) {
      return Refuse(argv[i]);
    }
  }
  for (const std::string& word : threads) {
    const unsigned long count = std::strtoul(word.c_str(), nullptr, 10);
    if (count < 1 || count > 1024) return Refuse("--threads=" + word);
    limits.threads.push_back(count);
  }
  for (const std::string& target : limits.targets) {
    if (!ForceTarget(target)) return Refuse("--targets=" + target);
  }
  if (!lists_rows) Measure(limits);
  AddMatMulRows();
  AddAttentionRows();
  AddSsdRows();
  AddDeltaRows();
  AddSmallRows();
  const size_t rows = benchmark::RunSpecifiedBenchmarks();  // says so where there is none
  benchmark::Shutdown();
  return rows == 0 ? 1 : 0;
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
  const double least = std::max(work.bytes / limits.read.at(team_.threads()),
                                work.ops / limits.peaks.at(team_.threads()).Of(work.dot));
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
      const auto run_row = [=](benchmark::State& state) {
        ForceTarget(target);
        Row row(state, threads);
        (*shared)(row);
      };
      auto* const added = benchmark::RegisterBenchmark(row_name.c_str(), run_row)->UseRealTime();
      if (!GetLimits().own_time) added->MinTime(0.1);
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
