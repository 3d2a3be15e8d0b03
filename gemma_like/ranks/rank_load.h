// Loading a model at all ranks.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_LOAD_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_LOAD_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// Called by all ranks: each loads its share of the file at `path`, and they compare what they have.
// An error at one rank is that of all and names it, and so is a difference between the models that
// they have loaded: their weights, or the instruction set that they compute with.
absl::StatusOr<LoadedModel> LoadShare(const std::shared_ptr<Ranks>& ranks, const std::string& path,
                                      EngineOptions options, const ModelLoader& load);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_LOAD_H_
