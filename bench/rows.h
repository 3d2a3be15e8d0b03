// What the rows of the ops' microbenchmark share: the limits that they are held against, and how a
// row is named, timed and counted.
#ifndef INLAY_BENCH_ROWS_H_
#define INLAY_BENCH_ROWS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ops/cpu/machine_limits.h"
#include "ops/team.h"

namespace inlay {

// What one call of an op reads and writes at least, if no operand is in a cache, and computes: a
// multiplication and an addition count as two, exponentials not at all.
struct Work {
  double bytes = 0;
  double ops = 0;
  Dot dot = Dot::kF32;  // the products that the target in use makes of it
};

// One row while it runs.
class Row {
 public:
  Row(benchmark::State& state, size_t threads) : state_(state), team_(threads) {}

  Team& team() { return team_; }

  // Times `call` and sets the counters: bytes and operations per second, operations per byte, and
  // `percent_of_limit`: the least time that the work takes at the read bandwidth and at the peak of
  // Work::dot on the CPU's best target, whichever is longer, over the time that it took. More than
  // 100 means that operands came from a cache.
  void Run(const Work& work, const std::function<void()>& call);

 private:
  benchmark::State& state_;
  Team team_;
};

// Adds the row `name` for every CPU target and number of threads that was chosen, as
// name/target/threads:n.
void AddRows(const std::string& name, std::function<void(Row&)> run);

// The rows of each source.
void AddMatMulRows();
void AddAttentionRows();
void AddSsdRows();
void AddDeltaRows();
void AddSmallRows();

// Values in [-1, 1), cheap and the same in every run.
std::vector<float> Values(size_t n);

}  // namespace inlay

#endif  // INLAY_BENCH_ROWS_H_
