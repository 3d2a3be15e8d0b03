// What the ranks after the first do.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_WORKER_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_WORKER_H_

#include <memory>

#include "gemma_like/load_model.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// Does what the RankLeader of the first rank says, until that is destroyed.
void ServeRank(const std::shared_ptr<Ranks>& ranks, ModelLoader load = LoadModel);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_WORKER_H_
