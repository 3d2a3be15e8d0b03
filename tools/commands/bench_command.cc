// inlay bench: tokens per second of prefill and decode, beside the machine's limits.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "cache/block_pool.h"
#include "cache/kv_cache.h"
#include "cache/model_identity.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/sampler.h"
#include "ops/cpu/machine_limits.h"
#include "ops/row_kernels.h"
#include "ops/team.h"
#include "tools/bench_results.h"
#include "tools/commands/commands.h"
#include "tools/flags/list_flag.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/process_memory.h"

namespace inlay {
namespace {

struct BenchFlags {
  ModelFlags model;
  std::vector<size_t> threads;
  size_t prompt = 512;
  size_t generate = 128;
  std::vector<size_t> depths = {0};
  std::vector<size_t> batches = {1};
  size_t repeats = 5;
  std::string format = "md";
};

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Random tokens, the same in every run.
std::vector<int32_t> RandomTokens(size_t count, size_t vocab_size) {
  std::mt19937_64 random(1);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab_size);
  return tokens;
}

class Bench {
 public:
  Bench(const BenchFlags& flags, Engine& engine, const InterruptWatch& interrupt)
      : flags_(flags), engine_(engine), interrupt_(interrupt) {
    const size_t rows = *std::max_element(flags.batches.begin(), flags.batches.end());
    logits_.resize(rows * engine.info().vocab_size);
  }

  // One token, on its own.
  absl::Status FirstToken() {
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache, NewCache(1));
    INLAY_RETURN_IF_ERROR(Append(*cache, RandomTokens(1, engine_.info().vocab_size)));
    return CheckLogits(1, 0);
  }

  // All measurements at one depth, each repeated on copies of the same conversation.
  absl::Status Run(size_t depth, std::vector<BenchRow>& results) {
    const size_t length = depth + std::max(flags_.prompt, flags_.generate);
    INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> past, NewCache(length));
    if (depth > 0) {
      INLAY_RETURN_IF_ERROR(Append(*past, RandomTokens(depth, engine_.info().vocab_size)));
    }
    if (flags_.prompt > 0) INLAY_RETURN_IF_ERROR(Measure(Prefilling(depth), *past, results));
    if (flags_.generate == 0) return absl::OkStatus();
    for (size_t batch : flags_.batches) {
      INLAY_RETURN_IF_ERROR(Measure(Decoding(depth, batch), *past, results));
    }
    return absl::OkStatus();
  }

 private:
  BenchRow Prefilling(size_t depth) const {
    const EngineInfo& info = engine_.info();
    const double n = static_cast<double>(flags_.prompt);
    const double passes = std::ceil(n / static_cast<double>(info.max_batch));
    return {.tokens = flags_.prompt,
            .depth = depth,
            .seconds = {},
            .bytes = passes * info.work.layers.bytes + info.work.output.bytes,
            .ops = n * info.work.layers.ops + info.work.output.ops};
  }

  BenchRow Decoding(size_t depth, size_t batch) const {
    const EngineInfo& info = engine_.info();
    const double n = static_cast<double>(flags_.generate),
                 conversations = static_cast<double>(batch);
    BenchRow row = {.decode = true,
                    .tokens = flags_.generate,
                    .depth = depth,
                    .batch = batch,
                    .seconds = {},
                    .bytes = n * (info.work.layers.bytes + info.work.output.bytes),
                    .ops = n * conversations * (info.work.layers.ops + info.work.output.ops)};
    for (size_t i = 0; i < flags_.generate; ++i)
      row.bytes += conversations *
                   static_cast<double>(engine_.CacheBytesRead(depth + i, CacheType(flags_.model)));
    return row;
  }

  absl::StatusOr<std::unique_ptr<KVCache>> NewCache(size_t max_length) const {
    return engine_.CreateCache({.max_length = max_length, .pool = pool_}, CacheType(flags_.model));
  }

  // A conversation with this past, which was saved.
  absl::StatusOr<std::unique_ptr<KVCache>> CopyOf(const std::vector<uint8_t>& saved,
                                                  size_t max_length) const {
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<KVCache> copy, NewCache(max_length));
    MemorySource source(saved);
    INLAY_ASSIGN_OR_RETURN(const LoadOutcome outcome, copy->Load({}, source));
    if (outcome.difference.empty()) return copy;
    return absl::InternalError(outcome.difference);  // it was saved here
  }

  absl::Status Measure(BenchRow row, const KVCache& past, std::vector<BenchRow>& results) {
    const std::vector<int32_t> tokens =
        RandomTokens(row.tokens * row.batch, engine_.info().vocab_size);
    // Each of several conversations has memory of its own, as those of different users have: forks
    // would share the rows and states that they read.
    std::vector<uint8_t> saved;
    MemorySink sink(saved);
    if (row.batch > 1) INLAY_RETURN_IF_ERROR(past.Save({}, sink));
    // The first repeat warms up and is not counted.
    for (size_t i = 0; i <= flags_.repeats; ++i) {
      std::vector<std::unique_ptr<KVCache>> caches(row.batch);
      for (auto& cache : caches) {
        INLAY_ASSIGN_OR_RETURN(cache,
                               row.batch == 1 ? past.Fork() : CopyOf(saved, past.max_length()));
      }
      const Clock::time_point start = Clock::now();
      INLAY_RETURN_IF_ERROR(row.decode ? Decode(caches, tokens) : Append(*caches.front(), tokens));
      if (i > 0) row.seconds.push_back(SecondsSince(start));
      INLAY_RETURN_IF_ERROR(CheckLogits(row.batch, row.depth + row.tokens - 1));
    }
    results.push_back(std::move(row));
    return absl::OkStatus();
  }

  // Each step takes a token for every conversation.
  absl::Status Decode(const std::vector<std::unique_ptr<KVCache>>& caches,
                      absl::Span<const int32_t> tokens) {
    std::vector<SequenceStep> steps(caches.size());
    const FloatRows logits(logits_.data(), caches.size(), engine_.info().vocab_size);
    for (; !tokens.empty(); tokens.remove_prefix(caches.size())) {
      for (size_t i = 0; i < caches.size(); ++i)
        steps[i] = {.cache = caches[i].get(), .tokens = tokens.subspan(i, 1)};
      INLAY_RETURN_IF_ERROR(WithMessage(engine_.Forward(steps, logits, Cancel())));
    }
    return absl::OkStatus();
  }

  absl::Status Append(KVCache& cache, absl::Span<const int32_t> tokens) {
    const FloatRows logits(logits_.data(), 1, engine_.info().vocab_size);
    return WithMessage(Prefill(engine_, cache, tokens, logits, Cancel()));
  }

  // NotFinite unless the last pass, which evaluated this position of `rows` conversations, gave
  // numbers: the speed of a damaged model says nothing about the model.
  absl::Status CheckLogits(size_t rows, size_t position) const {
    return AllFinite(logits_.data(), rows * engine_.info().vocab_size) ? absl::OkStatus()
                                                                       : NotFinite(position);
  }

  CancelCheck Cancel() const {
    return [this] { return interrupt_.requested(); };
  }
  static absl::Status WithMessage(const absl::Status& status) {
    return absl::IsCancelled(status)
               ? InterruptedError("interrupted before the end of the benchmark")
               : status;
  }

  const BenchFlags& flags_;
  Engine& engine_;
  const InterruptWatch& interrupt_;
  // Of all conversations, as a server's: memory that a repeat has used serves the next one.
  const std::shared_ptr<BlockPool> pool_ = std::make_shared<BlockPool>();
  std::vector<float> logits_;
};

// Raises the turn's limits to what the machine can do now: machines drift, so this is called before
// and after the measurements that are compared with the limits. The bandwidth is that of reading as
// many bytes as the weights have over and over, as decode does: what stays of them in a CPU cache
// stays there for both.
absl::Status MeasureLimits(const BenchModel& model, BenchTurn& turn) {
  constexpr uint64_t kMost = uint64_t{1} << 30;
  Team team(turn.threads);
  const double read = MeasureReadBandwidth(team, std::min(model.file_bytes, kMost));
  if (read == 0) {
    return absl::ResourceExhaustedError(
        "there is not enough memory to measure how fast it is read");
  }
  turn.read_limit = std::max(turn.read_limit, read);
  turn.ops_limit = std::max(turn.ops_limit, MeasureDotPeaks(turn.threads).Of(model.dot));
  return absl::OkStatus();
}

// Everything with one number of threads.
absl::Status RunTurn(const BenchFlags& flags, const BenchModel& model, size_t threads,
                     const InterruptWatch& interrupt, BenchResults::Rows& results) {
  BenchTurn& turn = results.turn;
  turn.threads = threads;
  INLAY_RETURN_IF_ERROR(MeasureLimits(model, turn));
  const bool counted_from_here = ResetPeakMemory();
  ModelFlags model_flags = flags.model;
  model_flags.threads = threads;
  {
    const Clock::time_point start = Clock::now();
    INLAY_ASSIGN_OR_RETURN(const LoadedModel loaded, LoadModel(model_flags));
    turn.load_seconds = SecondsSince(start);
    Bench bench(flags, *loaded.engine, interrupt);
    INLAY_RETURN_IF_ERROR(bench.FirstToken());
    turn.first_token_seconds = SecondsSince(start);
    for (size_t depth : flags.depths) INLAY_RETURN_IF_ERROR(bench.Run(depth, results.rows));
    if (counted_from_here) turn.peak_memory = PeakMemory();
  }
  return MeasureLimits(model, turn);
}

// llama-bench has another -b, of which hundreds are usual.
void NoteManyConversations(const std::vector<size_t>& batches) {
  constexpr size_t kFew = 64;
  const size_t least = *std::min_element(batches.begin(), batches.end());
  if (least <= kFew) return;
  WriteNote(absl::StrCat("inlay: -b ", least, " decodes ", least,
                         " conversations at once; the size of batches in tokens, which is -b of "
                         "llama-bench, has no effect here\n"));
}

absl::Status Run(const BenchFlags& flags) {
  if (flags.prompt == 0 && flags.generate == 0)
    return UsageError("-p 0 and -n 0 together leave nothing to measure");
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
  std::optional<BenchResults> results;
  {
    INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
    INLAY_ASSIGN_OR_RETURN(const ConfigEntry* config, FindConfig(file));
    results.emplace(BenchResults{BenchModel(file, *config), {}});
  }
  NoteManyConversations(flags.batches);
  const InterruptWatch interrupt;
  absl::Status status;
  for (size_t i = 0; i < flags.threads.size() && status.ok(); ++i) {
    BenchResults::Rows& turn = results->turns.emplace_back();
    status = OrOutOfMemory("the benchmark", [&] {
      return RunTurn(flags, results->model, flags.threads[i], interrupt, turn);
    });
    if (!status.ok() && turn.rows.empty()) results->turns.pop_back();
  }
  // An error takes nothing from what was measured before it.
  if (!status.ok() && results->turns.empty()) return status;
  Output out;
  out.Write(BenchText(*results, flags.format));
  const absl::Status written = out.Finish();
  return status.ok() ? written : status;
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *app.add_subcommand("bench",
                                          "Measures tokens per second of prefill and decode, and "
                                          "compares them with the machine's limits.");
  AddModelArgument(command, AddModelFlag(command, flags->model), flags->model);
  AddThreadsListFlag(command, flags->threads);
  AddCacheTypeFlag(command, flags->model);
  constexpr size_t kMost = 1'000'000;
  command.add_option("-p,--n-prompt", flags->prompt, "tokens of prefill (default: 512); 0: none")
      ->check(Between(0, kMost));
  command.add_option("-n,--n-gen", flags->generate, "tokens of decode (default: 128); 0: none")
      ->check(Between(0, kMost));
  AddListFlag(command, "-d,--n-depth", flags->depths,
              "tokens already in the conversation, one or several: 0,4096 (default: 0)", size_t{0},
              kMost);
  AddListFlag(command, "-b,--batch", flags->batches,
              "conversations that are decoded together, one or several: 1,4 (default: 1)",
              size_t{1}, EngineOptions().max_batch);
  command.add_option("-r,--repetitions", flags->repeats, "measured runs of each (default: 5)")
      ->check(Between(1, 1000));
  AllowOneOf(*command.add_option("-o,--output", flags->format, "form of the output (default: md)"),
             {"md", "csv", "json", "jsonl"});
  command.footer(
      "GB/s counts the weights and cache rows that each pass reads at least: of a mixture of "
      "experts those that one token uses. Gop/s counts the products of all tokens with the weights "
      "that they use, not what attention and recurrent layers compute beside the weights.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
