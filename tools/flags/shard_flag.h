// --shard: which part of a batch job this process does.
#ifndef INLAY_TOOLS_FLAGS_SHARD_FLAG_H_
#define INLAY_TOOLS_FLAGS_SHARD_FLAG_H_

#include <cstddef>
#include <functional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "serve/batch_job/shard.h"

namespace inlay {

struct ShardChoice {
  serve::Shard shard;
  // Processes of the job on this machine, as far as is known: they share its memory.
  size_t neighbours = 1;
};

// The value of a variable of the environment; null where it is not set.
using EnvironmentLookup = std::function<const char*(const char* name)>;

// --shard I/N
void AddShardFlag(CLI::App& command, std::string& shard);

// The shard of the flag's value; where it is empty, what the environment says of the processes that
// were started together:
//
// - a Slurm array (SLURM_ARRAY_TASK_ID, _MIN, _MAX, _COUNT), numbered from 0 or 1 without gaps;
// - in it or without it, the ranks of Open MPI's mpirun (OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_SIZE),
//   or else the tasks of a step of Slurm's srun (SLURM_PROCID, SLURM_STEP_NUM_TASKS,
//   SLURM_STEP_TASKS_PER_NODE), unless they compute one model together (ModelLoaderIsSet).
//
// Tasks of an array with ranks each have count × size shards. A usage error for a flag that is no
// shard; InvalidArgument, naming the variables, for an array of which this could be only a part.
absl::StatusOr<ShardChoice> ChooseShard(const std::string& flag,
                                        const EnvironmentLookup& environment);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_SHARD_FLAG_H_
