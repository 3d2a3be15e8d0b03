// Promise P2 for several ranks: whatever happens to conversations, logits have the bits of one
// process.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "gemma_like/ranks/rank_leader.h"
#include "tests/gemma_like/random_program.h"
#include "tests/gemma_like/ranks/thread_ranks.h"
#include "tests/must.h"

namespace inlay {
namespace {

// The fixture's models, of which it makes caches and expects bits, are one process. Here a model of
// several ranks takes their place.
class RanksTest : public RandomProgramTest {
 protected:
  void UseRanks(size_t count, size_t threads) {
    const ModelLoader load = [file = file_, load_config = GetParam().config.load](
                                 const std::string&,
                                 const EngineOptions& options) -> absl::StatusOr<LoadedModel> {
      absl::StatusOr<std::unique_ptr<Engine>> engine = load_config(file, options);
      if (!engine.ok()) return engine.status();
      LoadedModel model;
      model.file = file;
      model.engine = *std::move(engine);
      return model;
    };
    models_.clear();
    ranks_ = std::make_unique<ServedThreadRanks>(count, load);
    leader_ = std::make_shared<RankLeader>(ranks_->First(), load);
    models_.push_back(Must(leader_->LoadModel("the file", {.threads = threads})).engine);
  }

  void TearDown() override {
    models_.clear();
    leader_.reset();
    ranks_.reset();
  }

  std::unique_ptr<ServedThreadRanks> ranks_;
  std::shared_ptr<RankLeader> leader_;
};

INSTANTIATE_TEST_SUITE_P(Families, RanksTest, ::testing::ValuesIn(RankFamilies()),
                         [](const auto& info) { return info.param.name; });

TEST_P(RanksTest, RandomProgramsOfOneToFourRanks) {
  for (size_t count : {1, 2, 3, 4}) {
    SCOPED_TRACE(count);
    UseRanks(count, 1 + count % 2);
    ASSERT_NO_FATAL_FAILURE(RunProgram(Seed() + count, Steps() / 10));
    EXPECT_EQ(ranks_->group().bytes > 0, count > 1);
    TearDown();
  }
}

}  // namespace
}  // namespace inlay
