// What it is worth that a model's type says which product comes next: decoding with threads that
// fetch the beginning of their next matrix while they wait, and the same op by op, in turn.
//
//   schedule_bench [THREADS] MODEL.gguf...
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "gemma_like/load_model.h"
#include "ops/team.h"

namespace inlay {
namespace {

constexpr size_t kTokens = 32;
constexpr int kRounds = 40;

using Clock = std::chrono::steady_clock;

// Seconds of a token, the mean of kTokens from an empty cache on.
absl::StatusOr<double> Decode(Engine& engine) {
  const auto cache = *engine.CreateCache({.max_length = kTokens});
  std::vector<float> logits(engine.info().vocab_size);
  const Clock::time_point start = Clock::now();
  for (size_t i = 0; i < kTokens; ++i) {
    const auto token = static_cast<int32_t>(100 + i);
    const SequenceStep step{.cache = cache.get(), .tokens = {&token, 1}};
    const absl::Status status =
        engine.Forward({&step, 1}, FloatRows(logits.data(), 1, logits.size()));
    if (!status.ok()) return status;
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / kTokens;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + kRounds / 2, values.end());
  return values[kRounds / 2];
}

absl::Status Compare(const std::string& path, size_t threads) {
  const auto team = std::make_shared<Team>(threads);
  absl::StatusOr<LoadedModel> model = LoadModel(path, {.team = team});
  if (!model.ok()) return model.status();
  std::vector<double> ahead, op_by_op, ratios;
  for (int round = 0; round <= kRounds; ++round) {
    double seconds[2];
    for (int i = 0; i < 2; ++i) {
      const bool fetches = (round + i) % 2 == 0;
      team->Set({.fetches = fetches});
      const absl::StatusOr<double> token = Decode(*model->engine);
      if (!token.ok()) return token.status();
      seconds[fetches] = *token;
    }
    if (round == 0) continue;  // warms up
    op_by_op.push_back(seconds[0]);
    ahead.push_back(seconds[1]);
    ratios.push_back(seconds[0] / seconds[1]);
  }
  std::printf("| %s | %zu | %.0f | %.0f | %.3f |\n",
              std::string(model->engine->info().config_name).c_str(), threads, 1 / Median(op_by_op),
              1 / Median(ahead), Median(ratios));
  return absl::OkStatus();
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) {
  size_t threads = 2;
  int first = 1;
  if (argc > 1 && absl::SimpleAtoi(argv[1], &threads)) ++first;
  std::printf(
      "| model | threads | op by op, tokens/s | fetching ahead | ratio |\n|---|---|---|---|---|\n");
  for (int i = first; i < argc; ++i) {
    const absl::Status status = inlay::Compare(argv[i], std::max<size_t>(threads, 1));
    if (!status.ok()) {
      std::fprintf(stderr, "schedule_bench: %s\n", status.ToString().c_str());
      return EXIT_FAILURE;
    }
  }
}
