// What the cache's operations cost at 4096 tokens, beside the prefill that they save, for the demo
// model and for models of other shapes with random weights. Run it in the repository's root; what
// --benchmark_filter leaves out is not loaded.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "absl/strings/str_cat.h"
#include "base/byte_stream.h"
#include "benchmark/benchmark.h"
#include "cache/cache_options.h"
#include "cache/kv_cache.h"
#include "cache/model_identity.h"
#include "gemma_like/files/synth.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prefix_cache.h"
#include "gemma_like/generation/speculate.h"
#include "gemma_like/model/description.h"
#include "gemma_like/registry.h"
#include "gemma_like/sessions/session.h"
#include "io/gguf/gguf.h"
#include "io/store/state_store_file.h"
#include "ops/softmax.h"

namespace inlay {
namespace {

constexpr size_t kTokens = 4096;
constexpr const char* kConfigs[] = {"bard", "gemma-3-270m", "granite-4.0-h-350m", "mamba2-130m"};

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void Require(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "cache_bench: %s\n", status.ToString().c_str());
  std::exit(1);
}

template <class T>
T Require(absl::StatusOr<T> result) {
  Require(result.status());
  return *std::move(result);
}

std::string ScratchPath(const std::string& name) {
  return std::filesystem::temp_directory_path() / absl::StrCat("cache_bench_", getpid(), name);
}

std::unique_ptr<Engine> LoadEngine(const std::string& config) {
  const ConfigEntry& entry = *Require(FindConfig(config));
  const bool demo = config == "bard";
  const std::string path = demo ? "models/bard.gguf" : ScratchPath(".gguf");
  if (!demo) Require(WriteSynth(entry.synth(), {.type = WeightType::kQ8_0}, 1, path));
  auto file = std::make_shared<const GgufFile>(Require(GgufFile::Open(path)));
  const size_t threads = std::max(1u, std::thread::hardware_concurrency());
  auto engine = Require(entry.load(std::move(file), {.threads = threads}));
  if (!demo) std::filesystem::remove(path);  // it stays mapped
  return engine;
}

// A model with a conversation of kTokens.
struct Loaded {
  explicit Loaded(const std::string& config) : name(config), engine(LoadEngine(config)) {
    logits.resize(engine->info().vocab_size);
    for (size_t i = 0; i < kTokens; ++i) {
      tokens.push_back(static_cast<int32_t>((i * 7919) % logits.size()));
    }
    for (int run = 0; run < 2; ++run) {  // the first warms up
      const Clock::time_point start = Clock::now();
      conversation = NewCache();
      Require(Prefill(*engine, *conversation, tokens, Row()));
      prefill_seconds = SecondsSince(start);
    }
    MemorySink sink(saved);
    Require(conversation->Save(Require(engine->Identity()), sink));
  }

  FloatRows Row() { return FloatRows(logits.data(), 1, logits.size()); }
  std::unique_ptr<KVCache> NewCache() const {
    return Require(engine->CreateCache({.max_length = 2 * kTokens}));
  }
  void AppendOne(KVCache& cache) {
    const int32_t token = 1;
    const SequenceStep step{.cache = &cache, .tokens = {&token, 1}, .logit_rows = 0};
    Require(engine->Forward({&step, 1}, FloatRows(nullptr, 0, logits.size())));
  }

  std::string name;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<KVCache> conversation;
  std::vector<int32_t> tokens;
  std::vector<float> logits;
  std::vector<uint8_t> saved;
  double prefill_seconds = 0;
};

// One model at a time.
Loaded& Get(const std::string& config) {
  static std::unique_ptr<Loaded> loaded;
  if (loaded == nullptr || loaded->name != config) {
    loaded = nullptr;
    loaded = std::make_unique<Loaded>(config);
  }
  return *loaded;
}

// Runs `work` and says how many times as long a prefill takes.
void BesidePrefill(benchmark::State& state, const Loaded& loaded,
                   const std::function<void()>& work) {
  const Clock::time_point start = Clock::now();
  for (auto _ : state) work();
  state.counters["prefill_ms"] = loaded.prefill_seconds * 1e3;
  state.counters["prefill/this"] =
      loaded.prefill_seconds / SecondsSince(start) * static_cast<double>(state.iterations());
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(loaded.saved.size()));
}

void SaveToMemory(benchmark::State& state, Loaded& loaded) {
  std::vector<uint8_t> bytes;
  bytes.reserve(loaded.saved.size());
  BesidePrefill(state, loaded, [&] {
    bytes.clear();
    MemorySink sink(bytes);
    Require(loaded.conversation->Save({}, sink));
  });
}

void LoadFromMemory(benchmark::State& state, Loaded& loaded) {
  auto cache = loaded.NewCache();
  BesidePrefill(state, loaded, [&] {
    MemorySource source(loaded.saved);
    Require(cache->Load(Require(loaded.engine->Identity()), source));
  });
}

// The file is synced to the disk.
void SaveToFile(benchmark::State& state, Loaded& loaded) {
  const std::string path = ScratchPath(".session");
  BesidePrefill(state, loaded, [&] {
    const auto writer = Require(WriteStateFile(path, FileKind::kSession));
    Require(SaveSession(*loaded.engine, *loaded.conversation, *writer));
  });
  std::filesystem::remove(path);
}

// From the page cache, as a session is whose file was written or read before.
void LoadFromFile(benchmark::State& state, Loaded& loaded) {
  const std::string path = ScratchPath(".session");
  const auto writer = Require(WriteStateFile(path, FileKind::kSession));
  Require(SaveSession(*loaded.engine, *loaded.conversation, *writer));
  auto cache = loaded.NewCache();
  BesidePrefill(state, loaded, [&] {
    const auto reader = Require(ReadStateFile(path));
    Require(LoadSession(*loaded.engine, *reader, *cache));
  });
  std::filesystem::remove(path);
}

// Into a process's first conversation, whose memory comes from the system.
void LoadIntoNewMemory(benchmark::State& state, Loaded& loaded) {
  BesidePrefill(state, loaded, [&] {
    auto cache = loaded.NewCache();
    MemorySource source(loaded.saved);
    Require(cache->Load(Require(loaded.engine->Identity()), source));
  });
}

// 0 where the C library does not tell.
size_t HeapBytes() {
#ifdef __GLIBC__
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
#else
  return 0;
#endif
}

void Fork(benchmark::State& state, Loaded& loaded) {
  {
    // Of many, since the first may find memory that the C library counts as used already.
    constexpr size_t kForks = 256;
    std::vector<std::unique_ptr<KVCache>> forks(kForks);
    const size_t before = HeapBytes();
    for (auto& fork : forks) fork = Require(loaded.conversation->Fork());
    state.counters["bytes"] = static_cast<double>(HeapBytes() - before) / kForks;
  }
  for (auto _ : state) benchmark::DoNotOptimize(Require(loaded.conversation->Fork()));
}

// With the copies that the first token after a fork makes; subtract AppendOneAndRewind.
void ForkAndAppendOne(benchmark::State& state, Loaded& loaded) {
  for (auto _ : state) loaded.AppendOne(*Require(loaded.conversation->Fork()));
}

void AppendOneAndRewind(benchmark::State& state, Loaded& loaded) {
  auto cache = Require(loaded.conversation->Fork());
  loaded.AppendOne(*cache);
  for (auto _ : state) {
    loaded.AppendOne(*cache);
    Require(cache->Rewind(kTokens + 1));
  }
}

// The rewind alone, by twenty tokens: a fork of a longer conversation per iteration, not timed.
void Rewind(benchmark::State& state, Loaded& loaded) {
  auto cache = Require(loaded.conversation->Fork());
  for (int i = 0; i < 20; ++i) loaded.AppendOne(*cache);
  for (auto _ : state) {
    state.PauseTiming();
    auto fork = Require(cache->Fork());
    state.ResumeTiming();
    Require(fork->Rewind(kTokens));
  }
}

// The likeliest tokens after a text that repeats 64 tokens, with drafts of up to `most` tokens.
// What follows repeats itself too: with random weights that is what the likeliest tokens do.
template <size_t most>
void Decode(benchmark::State& state, Loaded& loaded) {
  constexpr size_t kGenerated = 128;
  std::vector<int32_t> prompt;
  for (size_t i = 0; i < 512; ++i) prompt.push_back(loaded.tokens[i % 64]);
  const auto past = loaded.NewCache();
  Require(Prefill(*loaded.engine, *past, prompt, loaded.Row()));
  PromptLookup lookup;
  size_t drafted = 0, accepted = 0;
  for (auto _ : state) {
    const auto cache = Require(past->Fork());
    DraftedDecoder decoder(*loaded.engine, *cache, most == 0 ? nullptr : &lookup, most);
    int32_t token = static_cast<int32_t>(ArgMax(loaded.logits.data(), loaded.logits.size()));
    for (size_t i = 0; i < kGenerated; ++i) {
      Require(decoder.Append(token));
      token = static_cast<int32_t>(ArgMax(decoder.logits().data, loaded.logits.size()));
    }
    drafted += decoder.drafted();
    accepted += decoder.accepted();
  }
  state.SetItemsProcessed(state.iterations() * static_cast<int64_t>(kGenerated));
  if (drafted > 0) {
    state.counters["accepted"] = static_cast<double>(accepted) / static_cast<double>(drafted);
  }
}

void Register() {
  using Work = void (*)(benchmark::State&, Loaded&);
  const std::vector<std::pair<const char*, Work>> works = {
      {"load_from_memory", LoadFromMemory},
      {"load_from_file", LoadFromFile},
      {"load_into_new_memory", LoadIntoNewMemory},
      {"save_to_memory", SaveToMemory},
      {"save_to_file", SaveToFile},
      {"fork", Fork},
      {"fork_and_append_one", ForkAndAppendOne},
      {"append_one_and_rewind", AppendOneAndRewind},
      {"rewind", Rewind},
      {"decode", Decode<0>},
      {"decode_with_drafts", Decode<8>}};
  for (const char* config : kConfigs) {
    if (!FindConfig(config).ok()) continue;  // not built in
    for (const auto& [name, work] : works) {
      benchmark::RegisterBenchmark(
          absl::StrCat(config, "/", name).c_str(),
          [config, work = work](benchmark::State& state) { work(state, Get(config)); })
          ->Unit(benchmark::kMicrosecond)
          ->UseRealTime();
    }
  }
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  inlay::Register();
  benchmark::RunSpecifiedBenchmarks();
}
