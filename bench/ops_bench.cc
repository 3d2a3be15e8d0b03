// Microbenchmarks of the ops: bytes of weights and cache per second for what is bound by reading,
// operations per second for what is bound by arithmetic.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "benchmark/benchmark.h"
#include "ops/attention.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "ops/ssd.h"

namespace inlay {
namespace {

using benchmark::Counter;
using benchmark::State;

// Values in [-1, 1), cheap and the same in every run.
std::vector<float> Values(size_t n) {
  std::vector<float> values(n);
  uint32_t state = 1;
  for (float& v : values) {
    state = state * 1664525u + 1013904223u;
    v = static_cast<float>(static_cast<int32_t>(state)) * 0x1p-31f;
  }
  return values;
}

void CountPerSecond(State& state, const char* name, double per_iteration) {
  state.counters[name] = Counter(per_iteration * static_cast<double>(state.iterations()),
                                 Counter::kIsRate, Counter::kIs1000);
}

// Arguments: type id, tokens, threads. 2048 x 2048 weights; enough matrices in turn that they do
// not stay in the caches.
void BM_MatMul(State& state) {
  const WeightTypeInfo* info = FindWeightType(static_cast<uint32_t>(state.range(0)));
  const size_t tokens = static_cast<size_t>(state.range(1)), dim = 2048;
  ThreadPool pool(static_cast<size_t>(state.range(2)));
  const size_t bytes = dim * dim / info->block_size * info->block_bytes;
  const size_t matrices = tokens > 1 ? 1 : (size_t{256} << 20) / bytes;
  // Zeros: the time does not depend on the values.
  const std::vector<uint8_t> weights(bytes);
  std::vector<PackedMatrix> packed(matrices);
  for (PackedMatrix& w : packed)
    w = PackedMatrix::Pack({weights.data(), info->type, dim, dim}, pool);
  std::vector<float> x = Values(tokens * dim), y(tokens * dim);
  MatMulInput input;
  size_t next = 0;
  for (auto _ : state) {
    input.Set(ConstFloatRows(x.data(), tokens, dim));
    MatMul(packed[next], input, FloatRows(y.data(), tokens, dim), pool);
    benchmark::DoNotOptimize(y.data());
    next = (next + 1) % matrices;
  }
  state.SetLabel(std::string(info->name));
  CountPerSecond(state, "bytes", static_cast<double>(bytes));
  CountPerSecond(state, "ops", 2.0 * static_cast<double>(dim * dim * tokens));
}
void MatMulArguments(benchmark::internal::Benchmark* b) {
  b->ArgNames({"type", "tokens", "threads"});
  for (WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16, WeightType::kQ8_0,
                          WeightType::kQ4_0, WeightType::kQ4_K, WeightType::kQ6_K}) {
    for (int64_t tokens : {1, 4, 512}) {
      for (int64_t threads : {1, 2}) b->Args({static_cast<int64_t>(type), tokens, threads});
    }
  }
}
BENCHMARK(BM_MatMul)->Apply(MatMulArguments)->UseRealTime();

// Arguments: head dim, length before, tokens, threads. 4 kv heads, 16 query heads, bf16 rows.
void BM_Attention(State& state) {
  const size_t dim = static_cast<size_t>(state.range(0));
  const size_t before = static_cast<size_t>(state.range(1));
  const size_t tokens = static_cast<size_t>(state.range(2));
  ThreadPool pool(static_cast<size_t>(state.range(3)));
  const KvShape shape = {4, dim, KvType::kBF16};
  const size_t num_blocks = (before + tokens + kKvBlockRows - 1) / kKvBlockRows;
  std::vector<uint8_t> memory(num_blocks * shape.BlockBytes());
  std::vector<void*> blocks;
  for (size_t b = 0; b < num_blocks; ++b) blocks.push_back(&memory[b * shape.BlockBytes()]);
  const KvView kv = {shape, blocks.data(), num_blocks};
  const std::vector<float> rows = Values((before + tokens) * 4 * dim);
  const ConstFloatRows stored(rows.data(), before + tokens, 4 * dim);
  StoreKv(stored, stored, 0, kv);
  const std::vector<float> q = Values(tokens * 16 * dim);
  std::vector<float> y(q.size());
  const AttentionParams params = {16, 1 / std::sqrt(static_cast<float>(dim)), 0, 0};
  for (auto _ : state) {
    Attention(params, ConstFloatRows(q.data(), tokens, 16 * dim), before, kv,
              FloatRows(y.data(), tokens, 16 * dim), pool);
    benchmark::DoNotOptimize(y.data());
  }
  const double positions = static_cast<double>(tokens) *
                           (static_cast<double>(before) + (static_cast<double>(tokens) + 1) / 2);
  CountPerSecond(state, "bytes", static_cast<double>((before + tokens) * 4 * dim * 2 * 2));
  CountPerSecond(state, "ops", 4.0 * 16 * static_cast<double>(dim) * positions);
}
BENCHMARK(BM_Attention)
    ->ArgNames({"dim", "before", "tokens", "threads"})
    ->ArgsProduct({{64, 128, 256}, {0, 4096}, {1, 128}, {1, 2}})
    ->UseRealTime();

constexpr SsdShape kSsd = {
    .heads = 48, .head_dim = 32, .groups = 1, .state_dim = 128, .conv_width = 4};

struct SsdMemory {
  SsdMemory()
      : log(Values(kSsd.LogElements())),
        state(Values(kSsd.StateElements())),
        next(kSsd.StateElements()),
        c(Values(kSsdChunk * kSsd.BcDim())),
        y(kSsdChunk * kSsd.Inner()) {
    view = {kSsd, log.data()};
    const std::vector<float> raw = Values(kSsdChunk * kSsd.heads), bias(kSsd.heads);
    const std::vector<float> a(kSsd.heads, -1.0f);
    SsdTimeSteps(ConstFloatRows(raw.data(), kSsdChunk, kSsd.heads), bias.data(), a.data(), 0, view);
  }

  std::vector<float> log, state, next, c, y;
  SsdLog view;
};

// Arguments: tokens (1: decode in the middle of a chunk, 32: a whole chunk), threads.
void BM_SsdOutputs(State& state) {
  const size_t tokens = static_cast<size_t>(state.range(0));
  const size_t first = tokens == 1 ? kSsdChunk / 2 : 0;
  ThreadPool pool(static_cast<size_t>(state.range(1)));
  SsdMemory memory;
  const std::vector<float> d(kSsd.heads, 1.0f);
  for (auto _ : state) {
    SsdOutputs(memory.view, memory.state.data(),
               ConstFloatRows(memory.c.data(), tokens, kSsd.BcDim()), d.data(), first,
               FloatRows(memory.y.data(), tokens, kSsd.Inner()), pool);
    benchmark::DoNotOptimize(memory.y.data());
  }
  CountPerSecond(state, "bytes", 4.0 * static_cast<double>(kSsd.StateElements()));
  CountPerSecond(state, "tokens", static_cast<double>(tokens));
}
BENCHMARK(BM_SsdOutputs)
    ->ArgNames({"tokens", "threads"})
    ->ArgsProduct({{1, 32}, {1, 2}})
    ->UseRealTime();

// Argument: threads.
void BM_SsdAdvance(State& state) {
  ThreadPool pool(static_cast<size_t>(state.range(0)));
  SsdMemory memory;
  for (auto _ : state) {
    SsdAdvance(memory.view, memory.state.data(), memory.next.data(), pool);
    benchmark::DoNotOptimize(memory.next.data());
  }
  CountPerSecond(state, "bytes", 8.0 * static_cast<double>(kSsd.StateElements()));
}
BENCHMARK(BM_SsdAdvance)->ArgName("threads")->Arg(1)->Arg(2)->UseRealTime();

void BM_RmsNorm(State& state) {
  const size_t cols = static_cast<size_t>(state.range(0));
  const std::vector<float> x = Values(cols), weight = Values(cols);
  std::vector<float> y(cols);
  for (auto _ : state) {
    RmsNorm(ConstFloatRows(x.data(), 1, cols), weight.data(), 1e-6f, FloatRows(y.data(), 1, cols));
    benchmark::DoNotOptimize(y.data());
  }
  CountPerSecond(state, "bytes", 12.0 * static_cast<double>(cols));
}
BENCHMARK(BM_RmsNorm)->ArgName("cols")->Arg(640)->Arg(2048)->Arg(4096);

}  // namespace
}  // namespace inlay
