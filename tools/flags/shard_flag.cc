#include "tools/flags/shard_flag.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "tools/flags/usage_error.h"
#include "tools/model_loader.h"

namespace inlay {
namespace {

using serve::kMostShards;
using serve::Shard;

std::optional<uint64_t> Number(absl::string_view text) {
  uint64_t number = 0;
  return absl::SimpleAtoi(text, &number) ? std::optional(number) : std::nullopt;
}

// The number in a variable; nothing where it is not set or is none.
std::optional<uint64_t> Variable(const EnvironmentLookup& environment, const char* name) {
  const char* const text = environment(name);
  return text == nullptr ? std::nullopt : Number(text);
}

absl::StatusOr<Shard> ParseShard(const std::string& flag) {
  const std::vector<std::string> parts = absl::StrSplit(flag, '/');
  const std::optional<uint64_t> index = Number(parts[0]);
  const std::optional<uint64_t> count = parts.size() == 2 ? Number(parts[1]) : std::nullopt;
  if (index.has_value() && count.has_value() && *index < *count && *count <= kMostShards)
    return Shard{.index = *index, .count = *count};
  return UsageError(absl::StrCat("--shard is ", QuoteForMessage(flag),
                                 ", not I/N with I from 0 to N - 1 and N at most ", kMostShards));
}

absl::StatusOr<Shard> ArrayShard(const EnvironmentLookup& environment) {
  const auto id = Variable(environment, "SLURM_ARRAY_TASK_ID");
  if (!id.has_value()) return Shard{};
  const auto first = Variable(environment, "SLURM_ARRAY_TASK_MIN");
  const auto last = Variable(environment, "SLURM_ARRAY_TASK_MAX");
  const auto count = Variable(environment, "SLURM_ARRAY_TASK_COUNT");
  // Some tasks of an array that are submitted again look like a whole one: such an array has gaps
  // or begins elsewhere, except where they are the first ones.
  const bool whole = first.has_value() && last.has_value() && count.has_value() && *first <= 1 &&
                     *last - *first + 1 == *count && *id >= *first && *id <= *last;
  if (whole) return Shard{.index = *id - *first, .count = *count};
  const auto shown = [](const std::optional<uint64_t>& value) {
    return value.has_value() ? absl::StrCat(*value) : std::string("not set");
  };
  return absl::InvalidArgumentError(
      absl::StrCat("SLURM_ARRAY_TASK_MIN, _MAX and _COUNT are ", shown(first), ", ", shown(last),
                   " and ", shown(count),
                   ", not a whole array from 0 or 1 on: say which shard this is with --shard I/N"));
}

ShardChoice RankShard(const EnvironmentLookup& environment) {
  const auto rank = Variable(environment, "OMPI_COMM_WORLD_RANK");
  const auto size = Variable(environment, "OMPI_COMM_WORLD_SIZE");
  if (rank.has_value() && size.has_value() && *rank < *size) {
    return {.shard = {.index = *rank, .count = *size},
            .neighbours = Variable(environment, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(1)};
  }
  const auto task = Variable(environment, "SLURM_PROCID");
  const auto tasks = Variable(environment, "SLURM_STEP_NUM_TASKS");
  if (!task.has_value() || !tasks.has_value() || *task >= *tasks) return {};
  // "2(x3),1": nodes with 2 tasks each, then one with one.
  const char* const per_node = environment("SLURM_STEP_TASKS_PER_NODE");
  const std::vector<absl::string_view> first =
      absl::StrSplit(per_node == nullptr ? "" : per_node, absl::ByAnyChar("(,"));
  return {.shard = {.index = *task, .count = *tasks}, .neighbours = Number(first[0]).value_or(1)};
}

}  // namespace

void AddShardFlag(CLI::App& command, std::string& shard) {
  command.add_option("--shard", shard,
                     "I/N: do the requests whose number, from 0, leaves I when divided by N "
                     "(default: what mpirun, srun or a Slurm array says, else all)");
}

absl::StatusOr<ShardChoice> ChooseShard(const std::string& flag,
                                        const EnvironmentLookup& environment) {
  ShardChoice choice = RankShard(environment);
  if (choice.neighbours == 0) choice.neighbours = 1;
  // The ranks of inlay-mpi compute one shard together, and only the first of them is here.
  if (ModelLoaderIsSet()) choice.shard = {};
  if (!flag.empty()) {
    INLAY_ASSIGN_OR_RETURN(choice.shard, ParseShard(flag));
    return choice;
  }
  INLAY_ASSIGN_OR_RETURN(const Shard task, ArrayShard(environment));
  const Shard rank = choice.shard;
  choice.shard = {.index = task.index * rank.count + rank.index, .count = task.count * rank.count};
  if (choice.shard.count <= kMostShards) return choice;
  return absl::InvalidArgumentError(absl::StrCat("this is one of ", choice.shard.count,
                                                 " processes, and a job has at most ", kMostShards,
                                                 " shards"));
}

}  // namespace inlay
