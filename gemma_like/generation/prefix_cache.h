// Conversations kept for others that begin in the same way.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_
#define INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prefix_index.h"

namespace inlay {

// What beginning a conversation with some tokens costs.
struct PrefixCost {
  size_t reused = 0;    // tokens whose past is there already
  size_t computed = 0;  // tokens that the model has to read
};

// Snapshots (forks) of conversations under a budget of bytes; who has not been used for longest
// goes first. Memory that snapshots share counts once. All caches given to one PrefixCache are of
// one engine, one type of rows and one pool. Safe to use from several threads.
//
// A snapshot of length n serves a conversation that begins with its n tokens, and one that leaves
// it earlier as far as it can be rewound exactly: a model of full attention only anywhere, others
// within RewindFloor(). So for other models it pays to insert snapshots on the way through a long
// text, as PromptSteps does.
class PrefixCache {
 public:
  explicit PrefixCache(size_t budget_bytes) : budget_(budget_bytes) {}

  // Keeps the conversation as it is now; an empty one is of no use and not kept. False, without any
  // change, when it alone has more bytes than the budget or there is no memory for it.
  bool Insert(const KVCache& cache);

  // What a conversation with these tokens would cost now. The last token is always computed, since
  // somebody wants its logits.
  PrefixCost Cost(absl::Span<const int32_t> tokens) const;

  // A conversation with the longest possible beginning of `tokens`, at most all but the last; null
  // when there is none, or no memory for it. The snapshot stays.
  std::unique_ptr<KVCache> Take(absl::Span<const int32_t> tokens);

  // Drops the snapshot that has not been used for longest; false when there is none. For whoever
  // needs the pool's memory for something else.
  bool DropOldest();

  size_t snapshots() const;
  size_t bytes() const;  // of all blocks held, each counted once
  size_t budget_bytes() const { return budget_; }

 private:
  struct Snapshot {
    std::unique_ptr<KVCache> cache;
    std::list<Snapshot>::iterator self;
  };
  struct Held {
    size_t snapshots = 0;  // that refer to the block
    size_t bytes = 0;
  };
  void Count(const KVCache& cache, bool add);
  // Takes a snapshot out that is not in the index any more.
  void Drop(Snapshot* snapshot);
  bool DropOldestSnapshot();
  bool InsertSnapshot(const KVCache& cache);

  const size_t budget_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::list<Snapshot> snapshots_;  // the one used last comes last
  PrefixIndex<Snapshot*> index_;   // of their tokens; the floor is the lowest position to rewind to
  std::unordered_map<const void*, Held> blocks_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_
