// What the cache's operations cost, beside the prefill that they save: the demo model at 4096
// tokens. Run it in the repository's root.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "benchmark/benchmark.h"
#include "cache/byte_stream.h"
#include "cache/kv_cache.h"
#include "gemma_like/generate.h"
#include "gemma_like/load_model.h"

namespace inlay {
namespace {

constexpr size_t kTokens = 4096;

struct Loaded {
  LoadedModel model;
  std::unique_ptr<KVCache> conversation;
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  std::vector<uint8_t> saved;

  FloatRows Row() { return FloatRows(logits.data(), 1, logits.size()); }
  std::unique_ptr<KVCache> NewCache() const {
    return model.engine->CreateCache({.max_length = 2 * kTokens});
  }
};

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "cache_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

Loaded& Get() {
  static Loaded& loaded = *[] {
    auto* made = new Loaded;
    auto model = LoadModel("models/bard.gguf", {});
    Require(model.status());
    made->model = *std::move(model);
    const size_t vocab = made->model.engine->info().vocab_size;
    made->logits.resize(vocab);
    for (size_t i = 0; i < kTokens; ++i) {
      made->tokens.push_back(static_cast<int32_t>((i * 7919) % vocab));
    }
    made->conversation = made->NewCache();
    Require(Prefill(*made->model.engine, *made->conversation, made->tokens, made->Row()));
    MemorySink sink(made->saved);
    Require(made->conversation->Save(1, sink));
    return made;
  }();
  return loaded;
}

void AppendOne(KVCache& cache) {
  const int32_t token = 1;
  const SequenceStep step{.cache = &cache, .tokens = {&token, 1}, .logit_rows = 0};
  Require(Get().model.engine->Forward({&step, 1}, FloatRows(nullptr, 0, Get().logits.size())));
}

void BM_Prefill(benchmark::State& state) {
  Loaded& loaded = Get();
  for (auto _ : state) {
    auto cache = loaded.NewCache();
    Require(Prefill(*loaded.model.engine, *cache, loaded.tokens, loaded.Row()));
  }
}
BENCHMARK(BM_Prefill)->Unit(benchmark::kMillisecond);

void BM_Load(benchmark::State& state) {
  Loaded& loaded = Get();
  auto cache = loaded.NewCache();
  for (auto _ : state) {
    MemorySource source(loaded.saved);
    Require(cache->Load(1, source));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(loaded.saved.size()));
}
BENCHMARK(BM_Load)->Unit(benchmark::kMillisecond);

void BM_Save(benchmark::State& state) {
  Loaded& loaded = Get();
  std::vector<uint8_t> bytes;
  bytes.reserve(loaded.saved.size());
  for (auto _ : state) {
    bytes.clear();
    MemorySink sink(bytes);
    Require(loaded.conversation->Save(1, sink));
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(loaded.saved.size()));
}
BENCHMARK(BM_Save)->Unit(benchmark::kMillisecond);

void BM_Fork(benchmark::State& state) {
  Loaded& loaded = Get();
  for (auto _ : state) benchmark::DoNotOptimize(loaded.conversation->Fork());
}
BENCHMARK(BM_Fork)->Unit(benchmark::kMicrosecond);

// With the copies that the first token after a fork makes; subtract BM_AppendOne.
void BM_ForkAndAppendOne(benchmark::State& state) {
  for (auto _ : state) AppendOne(*Get().conversation->Fork());
}
BENCHMARK(BM_ForkAndAppendOne)->Unit(benchmark::kMicrosecond);

void BM_AppendOneAndRewind(benchmark::State& state) {
  auto cache = Get().conversation->Fork();
  AppendOne(*cache);
  for (auto _ : state) {
    AppendOne(*cache);
    Require(cache->Rewind(kTokens + 1));
  }
}
BENCHMARK(BM_AppendOneAndRewind)->Unit(benchmark::kMicrosecond);

// The rewind alone: a fork of a longer conversation per iteration, not timed.
void BM_Rewind(benchmark::State& state) {
  auto cache = Get().conversation->Fork();
  for (int i = 0; i < 20; ++i) AppendOne(*cache);
  for (auto _ : state) {
    state.PauseTiming();
    auto fork = cache->Fork();
    state.ResumeTiming();
    Require(fork->Rewind(kTokens));
  }
}
BENCHMARK(BM_Rewind)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace inlay
