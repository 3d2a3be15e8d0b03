// inlay bench: tokens per second of prefill and decode, beside what the machine can do at most.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gemma_like/generate.h"
#include "io/status_macros.h"
#include "ops/cpu_target.h"
#include "ops/machine_limits.h"
#include "ops/thread_pool.h"
#include "tools/commands.h"
#include "tools/interrupt.h"
#include "tools/json_text.h"
#include "tools/model_flags.h"
#include "tools/output.h"
#include "tools/validators.h"

namespace inlay {
namespace {

struct BenchFlags {
  ModelFlags model;
  size_t prompt = 512;
  size_t generate = 128;
  std::vector<size_t> depths = {0};
  size_t repeats = 5;
  std::string format = "md";
};

struct Limits {
  double read = 0;  // bytes per second with the threads of the run
  double int8 = 0;  // operations per second with them
};

// One kind of work at one depth.
struct Measurement {
  bool decode = false;
  size_t tokens = 0;
  size_t depth = 0;  // tokens in the conversation before
  std::vector<double> seconds;
  double bytes = 0;  // read at least: weights and cache rows for decode, weights for prefill
  double ops = 0;    // of the products with weights

  std::string name() const {
    return absl::StrCat(decode ? "tg" : "pp", tokens, depth > 0 ? absl::StrCat(" @ d", depth) : "");
  }
  double rate(double seconds_taken) const { return static_cast<double>(tokens) / seconds_taken; }
  double median_seconds() const {
    std::vector<double> sorted = seconds;
    std::sort(sorted.begin(), sorted.end());
    const size_t half = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }
  // Of the rates, around their mean.
  double deviation() const {
    double sum = 0, squares = 0;
    for (double s : seconds) sum += rate(s);
    const double mean = sum / static_cast<double>(seconds.size());
    for (double s : seconds) squares += (rate(s) - mean) * (rate(s) - mean);
    return seconds.size() < 2 ? 0 : std::sqrt(squares / static_cast<double>(seconds.size() - 1));
  }
};

using Clock = std::chrono::steady_clock;

// Random tokens, the same in every run.
std::vector<int32_t> RandomTokens(size_t count, size_t vocab_size) {
  std::mt19937_64 random(1);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(random() % vocab_size);
  return tokens;
}

class Bench {
 public:
  Bench(Engine& engine, const InterruptWatch& interrupt)
      : engine_(engine), interrupt_(interrupt), logits_(engine.info().vocab_size) {}

  // Both measurements at one depth, each repeated on a fork of the same conversation.
  absl::Status Run(const BenchFlags& flags, size_t depth, std::vector<Measurement>& results) {
    const EngineInfo& info = engine_.info();
    const size_t length = depth + std::max(flags.prompt, flags.generate);
    const auto past = engine_.CreateCache({.max_length = length}, CacheType(flags.model));
    if (depth > 0) INLAY_RETURN_IF_ERROR(Append(*past, RandomTokens(depth, info.vocab_size)));
    for (const bool decode : {false, true}) {
      Measurement m;
      m.decode = decode;
      m.tokens = decode ? flags.generate : flags.prompt;
      m.depth = depth;
      if (m.tokens == 0) continue;
      const double n = static_cast<double>(m.tokens);
      const double batches = decode ? n : std::ceil(n / static_cast<double>(info.max_batch));
      m.bytes = batches * info.layer_work.bytes + (decode ? n : 1) * info.output_work.bytes;
      m.ops = n * info.layer_work.ops + (decode ? n : 1) * info.output_work.ops;
      for (size_t i = 0; decode && i < m.tokens; ++i) {
        m.bytes += static_cast<double>(engine_.CacheBytesRead(depth + i, CacheType(flags.model)));
      }
      const std::vector<int32_t> tokens = RandomTokens(m.tokens, info.vocab_size);
      // The first repeat warms up and is not counted.
      for (size_t i = 0; i <= flags.repeats; ++i) {
        const auto cache = past->Fork();
        const Clock::time_point start = Clock::now();
        if (decode) {
          for (const int32_t& token : tokens) INLAY_RETURN_IF_ERROR(Append(*cache, {&token, 1}));
        } else {
          INLAY_RETURN_IF_ERROR(Append(*cache, tokens));
        }
        if (i > 0) m.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      }
      results.push_back(std::move(m));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Append(KVCache& cache, absl::Span<const int32_t> tokens) {
    const absl::Status status =
        Prefill(engine_, cache, tokens, FloatRows(logits_.data(), 1, logits_.size()),
                [this] { return interrupt_.requested(); });
    return absl::IsCancelled(status)
               ? absl::CancelledError("interrupted before the end of the benchmark")
               : status;
  }

  Engine& engine_;
  const InterruptWatch& interrupt_;
  std::vector<float> logits_;
};

struct Row {
  const Measurement& m;
  double per_second, deviation, bytes, read_share, ops, peak_share;

  Row(const Measurement& m, const Limits& limits)
      : m(m),
        per_second(m.rate(m.median_seconds())),
        deviation(m.deviation()),
        bytes(m.bytes / m.median_seconds()),
        read_share(100 * bytes / limits.read),
        ops(m.ops / m.median_seconds()),
        peak_share(100 * ops / limits.int8) {}
};

nlohmann::ordered_json RowJson(const Row& row, const std::string& model, const BenchFlags& flags,
                               const Limits& limits) {
  return {{"model", model},
          {"target", ChosenTarget()},
          {"threads", flags.model.threads},
          {"test", row.m.decode ? "tg" : "pp"},
          {"tokens", row.m.tokens},
          {"depth", row.m.depth},
          {"tokens_per_second", row.per_second},
          {"deviation", row.deviation},
          {"seconds", row.m.seconds},
          {"bytes_per_second", row.bytes},
          {"percent_of_read_bandwidth", row.read_share},
          {"ops_per_second", row.ops},
          {"percent_of_int8_peak", row.peak_share},
          {"limit_bytes_per_second", limits.read},
          {"limit_int8_ops_per_second", limits.int8}};
}

void WriteTable(const std::vector<Row>& rows, const std::string& model, const BenchFlags& flags,
                const Limits& limits, Output& out) {
  out.Write(absl::StrFormat(
      "| model | threads | test | tokens/s | GB/s (%% of %.1f read) | Gop/s (%% of %.0f int8) |\n"
      "|---|---:|---|---:|---:|---:|\n",
      limits.read / 1e9, limits.int8 / 1e9));
  for (const Row& row : rows) {
    out.Write(absl::StrFormat("| %s | %d | %s | %.2f ± %.2f | %.1f (%.0f %%) | %.0f (%.0f %%) |\n",
                              model, flags.model.threads, row.m.name(), row.per_second,
                              row.deviation, row.bytes / 1e9, row.read_share, row.ops / 1e9,
                              row.peak_share));
  }
}

void WriteCsv(const std::vector<Row>& rows, const std::string& model, const BenchFlags& flags,
              Output& out) {
  out.Write(
      "model,threads,test,depth,tokens_per_second,deviation,percent_of_read_bandwidth,percent_of_"
      "int8_peak\n");
  for (const Row& row : rows) {
    out.Write(absl::StrFormat("\"%s\",%d,%s%d,%d,%.3f,%.3f,%.1f,%.1f\n", model, flags.model.threads,
                              row.m.decode ? "tg" : "pp", row.m.tokens, row.m.depth, row.per_second,
                              row.deviation, row.read_share, row.peak_share));
  }
}

absl::Status Run(const BenchFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model));
  // Measured right before, with as many threads: such machines drift.
  ThreadPool pool(flags.model.threads);
  const Limits limits = {.read = MeasureReadBandwidth(pool),
                         .int8 = MeasureDotPeaks().int8 * static_cast<double>(flags.model.threads)};
  const InterruptWatch interrupt;
  std::vector<Measurement> measurements;
  Bench bench(*model.engine, interrupt);
  for (size_t depth : flags.depths) INLAY_RETURN_IF_ERROR(bench.Run(flags, depth, measurements));

  const std::string name(model.engine->info().config_name);
  std::vector<Row> rows;
  for (const Measurement& m : measurements) rows.emplace_back(m, limits);
  Output out;
  if (flags.format == "md") {
    WriteTable(rows, name, flags, limits, out);
  } else if (flags.format == "csv") {
    WriteCsv(rows, name, flags, out);
  } else {
    nlohmann::ordered_json all = nlohmann::ordered_json::array();
    for (const Row& row : rows) {
      nlohmann::ordered_json json = RowJson(row, name, flags, limits);
      if (flags.format == "jsonl") {
        out.Write(json.dump() + "\n");
      } else {
        all.push_back(std::move(json));
      }
    }
    if (flags.format == "json") out.Write(JsonText(all));
  }
  return out.Finish();
}

}  // namespace

void AddBench(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<BenchFlags>();
  CLI::App& command = *app.add_subcommand(
      "bench",
      "Measures tokens per second of prefill and decode, and what share of the machine that is.");
  AddEngineFlags(command, flags->model);
  AddCacheTypeFlag(command, flags->model);
  constexpr size_t kMost = 1'000'000;
  command.add_option("-p,--n-prompt", flags->prompt, "tokens of prefill (default: 512); 0: none")
      ->check(Between(0, kMost));
  command.add_option("-n,--n-gen", flags->generate, "tokens of decode (default: 128); 0: none")
      ->check(Between(0, kMost));
  command
      .add_option("-d,--n-depth", flags->depths,
                  "tokens before, one or several: 0,4096 (default: 0)")
      ->delimiter(',')
      ->check(Between(0, kMost));
  command.add_option("-r,--repetitions", flags->repeats, "counted runs of each (default: 5)")
      ->check(Between(1, 1000));
  command.add_option("-o,--output", flags->format, "md, csv, json or jsonl (default: md)")
      ->check(OneOf({"md", "csv", "json", "jsonl"}));
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
