// A model of a file, at ranks that are threads.
#ifndef INLAY_TESTS_GEMMA_LIKE_RANKS_RANKED_FILE_H_
#define INLAY_TESTS_GEMMA_LIKE_RANKS_RANKED_FILE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "gemma_like/ranks/rank_leader.h"
#include "tests/gemma_like/ranks/thread_ranks.h"

namespace inlay {

class RankedFile {
 public:
  RankedFile(size_t count, const std::string& path)
      : ranks_(count, OwnLoader()),
        leader_(std::make_shared<RankLeader>(ranks_.First(), OwnLoader())),
        model_(leader_->LoadModel(path, {})) {}
  ~RankedFile() {
    model_ = absl::UnknownError("dropped");
    leader_.reset();
  }

  const absl::StatusOr<LoadedModel>& model() const { return model_; }
  const ThreadGroup& group() const { return ranks_.group(); }

 private:
  static ModelLoader OwnLoader() {
    return [](const std::string& path, const EngineOptions& options) {
      return LoadModel(path, options);
    };
  }

  ServedThreadRanks ranks_;
  std::shared_ptr<RankLeader> leader_;
  absl::StatusOr<LoadedModel> model_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_RANKS_RANKED_FILE_H_
