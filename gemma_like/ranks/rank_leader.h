// Models that several ranks compute, as engines of the first rank.
#ifndef INLAY_GEMMA_LIKE_RANKS_RANK_LEADER_H_
#define INLAY_GEMMA_LIKE_RANKS_RANK_LEADER_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/cache_follower.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "gemma_like/ranks/rank_load.h"
#include "gemma_like/ranks/rank_message.h"
#include "gemma_like/ranks/ranks.h"

namespace inlay {

// The first rank of a group, whose other ranks are in ServeRank: it makes them load the models that
// it loads, hold the conversations that its callers hold, and compute the batches that these ask
// for. Its engines behave as others do, and give the same bits.
class RankLeader final : public CacheFollower, public std::enable_shared_from_this<RankLeader> {
 public:
  // `load` loads a model at this rank; the others have the same.
  explicit RankLeader(std::shared_ptr<Ranks> ranks, ModelLoader load = inlay::LoadModel);
  // Lets the other ranks end.
  ~RankLeader() override;

  // Loads a model at all ranks, from a file of the same path at each.
  absl::StatusOr<LoadedModel> LoadModel(const std::string& path, const EngineOptions& options);

  absl::Status Forked(const KVCache& cache, const KVCache& fork) override;
  absl::Status Rewound(const KVCache& cache, size_t position) override;
  absl::Status Trimmed(const KVCache& cache, size_t rewind) override;
  absl::Status Replaced(const KVCache& cache, const KVCache& snapshot) override;
  absl::Status SaveParts(const KVCache& cache, uint64_t seed, ByteSink& sink) override;
  absl::Status LoadParts(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                         ByteSource& source) override;
  void Dropped(const KVCache& cache) override;

 private:
  friend class RankEngine;

  // Gives a new conversation a number and tells the other ranks of it before their next batch.
  absl::Status Follow(uint64_t model, const CacheOptions& options, KVCache& cache);
  // The conversation's number; InvalidArgument for one that was not made by these engines.
  absl::StatusOr<uint64_t> NumberOf(const KVCache& cache) const;
  // Adds to what is sent before the next batch, all or nothing. The caller holds mutex_.
  void Tell(RankCommand command, std::initializer_list<uint64_t> fields);
  // The same of a command that makes `cache`, whose number is conversations_.
  void TellOfNew(const KVCache& cache, RankCommand command, std::initializer_list<uint64_t> fields);

  // Sends what has happened to conversations, then `message`. The caller holds calls_.
  void Send(const RankMessage& message);

  const std::shared_ptr<Ranks> ranks_;
  const ModelLoader load_;
  RankMessage stop_;  // made by the constructor, which may fail for lack of memory
  std::mutex calls_;  // held while the ranks do one thing together
  uint64_t models_ = 0;

  mutable std::mutex mutex_;  // guards the members below
  RankMessage pending_;       // of conversations, since the last batch
  std::vector<uint64_t> dropped_;
  std::map<const KVCache*, uint64_t> numbers_;
  uint64_t conversations_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_RANKS_RANK_LEADER_H_
