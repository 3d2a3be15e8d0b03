// inlay logits: what the model computes after given tokens, for comparing engines.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/sampler.h"
#include "ops/row_kernels.h"
#include "ops/softmax.h"
#include "tools/commands/commands.h"
#include "tools/flags/list_flag.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/validators.h"
#include "tools/format.h"
#include "tools/output.h"

namespace inlay {
namespace {

struct LogitsFlags {
  ModelFlags model;
  std::vector<int32_t> tokens;
  size_t greedy = 0;
  std::string format = "json";  // the only one, accepted as every command with figures does
};

absl::StatusOr<std::vector<int32_t>> Greedy(Engine& engine, KVCache& cache,
                                            std::vector<float> logits, size_t count) {
  std::vector<int32_t> tokens;
  const FloatRows row(logits.data(), 1, logits.size());
  while (tokens.size() < count) {
    if (!AllFinite(logits.data(), logits.size())) return NotFinite(cache.length() - 1);
    tokens.push_back(static_cast<int32_t>(ArgMax(logits.data(), logits.size())));
    if (tokens.size() == count) break;
    INLAY_RETURN_IF_ERROR(Prefill(engine, cache, absl::MakeConstSpan(tokens).last(1), row));
  }
  return tokens;
}

absl::Status Run(const LogitsFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const LoadedModel model, LoadModel(flags.model));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                         CreateCache(flags.model, *model.engine));
  // The last greedy token is not evaluated.
  const size_t positions = flags.tokens.size() + std::max<size_t>(flags.greedy, 1) - 1;
  if (positions > cache->max_length()) {
    return absl::OutOfRangeError(absl::StrCat(
        Plural(flags.tokens.size(), "token"), " and ", flags.greedy, " greedy after them need a ",
        "context of ", positions, "; this one has ", cache->max_length(), " (-c)"));
  }
  std::vector<float> logits(model.engine->info().vocab_size);
  INLAY_RETURN_IF_ERROR(
      Prefill(*model.engine, *cache, flags.tokens, FloatRows(logits.data(), 1, logits.size())));
  if (!AllFinite(logits.data(), logits.size())) return NotFinite(cache->length() - 1);
  INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> greedy,
                         Greedy(*model.engine, *cache, logits, flags.greedy));
  Output out;
  out.Write(absl::StrCat("{\"tokens\":[", absl::StrJoin(flags.tokens, ","), "],\"logits\":[",
                         absl::StrJoin(logits, ",", AppendFloat), "],\"greedy\":[",
                         absl::StrJoin(greedy, ","), "]}\n"));
  return out.Finish();
}

}  // namespace

void AddLogits(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<LogitsFlags>();
  CLI::App& command = *app.add_subcommand(
      "logits",
      "Prints the logits after given tokens, and the most likely tokens that follow, as JSON.");
  AddEngineFlags(command, flags->model);
  AddCacheFlags(command, flags->model);
  AddCacheLimitFlag(command, flags->model);
  AddListFlag(command, "--tokens", flags->tokens,
              "token ids, as 2,17,301; used as given, without BOS", int32_t{0},
              std::numeric_limits<int32_t>::max())
      ->required();
  command
      .add_option("--greedy", flags->greedy,
                  "how many tokens to generate greedily, by the largest logit")
      ->check(Between(0, std::numeric_limits<int32_t>::max()));
  AllowOneOf(*command.add_option("-o,--output", flags->format, "form of the output (default)"),
             {"json"});
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
