// Which shard a process does, by its flag and its environment.
#include "tools/flags/shard_flag.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "tools/flags/usage_error.h"
#include "tools/model_loader.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using Variables = std::map<std::string, std::string>;

absl::StatusOr<ShardChoice> Choose(const std::string& flag, const Variables& variables) {
  return ChooseShard(flag, [&](const char* name) -> const char* {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  });
}

std::string ShardOf(const std::string& flag, const Variables& variables) {
  const auto choice = Choose(flag, variables);
  return choice.ok() ? choice->shard.Text() : std::string(choice.status().message());
}

Variables Array(const std::string& id, const std::string& min, const std::string& max,
                const std::string& count) {
  return {{"SLURM_ARRAY_TASK_ID", id},
          {"SLURM_ARRAY_TASK_MIN", min},
          {"SLURM_ARRAY_TASK_MAX", max},
          {"SLURM_ARRAY_TASK_COUNT", count}};
}

TEST(ShardFlagTest, TheFlagIsChecked) {
  EXPECT_EQ(ShardOf("", {}), "0/1");
  EXPECT_EQ(ShardOf("3/4", {}), "3/4");
  EXPECT_EQ(ShardOf("511/512", {}), "511/512");
  for (const char* wrong : {"4/4", "-1/4", "1", "1/2/3", "a/b", "/", "0/0", "0/513", "1/ "}) {
    const auto choice = Choose(wrong, {});
    EXPECT_TRUE(IsUsageError(choice.status())) << wrong;
  }
}

TEST(ShardFlagTest, ArraysOfSlurmThatAreWhole) {
  EXPECT_EQ(ShardOf("", Array("0", "0", "3", "4")), "0/4");
  EXPECT_EQ(ShardOf("", Array("4", "1", "4", "4")), "3/4");
  EXPECT_EQ(ShardOf("5/9", Array("4", "1", "4", "4")), "5/9") << "the flag comes first";
  for (const Variables& part : {Array("2", "2", "3", "2"),
                                Array("1", "1", "5", "3"),
                                Array("9", "0", "3", "4"),
                                {{"SLURM_ARRAY_TASK_ID", "0"}}}) {
    EXPECT_THAT(ShardOf("", part), HasSubstr("say which shard this is with --shard I/N"));
    EXPECT_EQ(ShardOf("1/5", part), "1/5");
  }
  EXPECT_THAT(ShardOf("", Array("0", "0", "600", "601")), HasSubstr("at most 512 shards"));
}

TEST(ShardFlagTest, RanksAndTheirNeighbours) {
  Variables mpi = {{"OMPI_COMM_WORLD_RANK", "2"},
                   {"OMPI_COMM_WORLD_SIZE", "6"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
  EXPECT_EQ(ShardOf("", mpi), "2/6");
  EXPECT_EQ(Choose("", mpi)->neighbours, 3u);
  const Variables step = {
      {"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  EXPECT_EQ(ShardOf("", step), "1/4");
  EXPECT_EQ(Choose("", step)->neighbours, 2u);
  // mpirun's processes see the step that started mpirun's own.
  mpi.insert(step.begin(), step.end());
  EXPECT_EQ(ShardOf("", mpi), "2/6");
  // In the tasks of an array.
  mpi.merge(Array("1", "0", "2", "3"));
  EXPECT_EQ(ShardOf("", mpi), "8/18");
  // A batch script has the variables of its job, and is no task of a step.
  EXPECT_EQ(ShardOf("", {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}), "0/1");
}

// As inlay-mpi's do, of which only the first runs the command.
TEST(ShardFlagTest, RanksThatComputeTogetherAreNoShards) {
  Variables mpi = {{"OMPI_COMM_WORLD_RANK", "0"},
                   {"OMPI_COMM_WORLD_SIZE", "6"},
                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}};
  SetModelLoader([](const std::string&, const EngineOptions&) -> absl::StatusOr<LoadedModel> {
    return absl::UnimplementedError("");
  });
  EXPECT_EQ(ShardOf("", mpi), "0/1");
  EXPECT_EQ(Choose("", mpi)->neighbours, 3u);
  EXPECT_EQ(ShardOf("1/2", mpi), "1/2");
  mpi.merge(Array("1", "0", "2", "3"));
  EXPECT_EQ(ShardOf("", mpi), "1/3");
  SetModelLoader(nullptr);
}

}  // namespace
}  // namespace inlay
