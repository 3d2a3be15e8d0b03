// Conversations kept for others that begin in the same way.
#ifndef INLAY_GEMMA_LIKE_PREFIX_CACHE_H_
#define INLAY_GEMMA_LIKE_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "ops/views.h"

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
// text, as Prefill below does.
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
  // when there is none. The snapshot stays.
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
    uint64_t used = 0;  // the time of its last use
  };
  struct Held {
    size_t snapshots = 0;  // that refer to the block
    size_t bytes = 0;
  };
  struct Best {
    size_t index = 0;
    size_t length = 0;
  };

  // How many of the tokens the snapshot gives, as it is or rewound.
  static size_t Usable(const KVCache& snapshot, absl::Span<const int32_t> tokens);
  Best FindBest(absl::Span<const int32_t> tokens) const;
  void Count(const KVCache& cache, bool add);
  void Drop(size_t index);
  bool InsertSnapshot(const KVCache& cache);

  const size_t budget_;
  mutable std::mutex mutex_;
  uint64_t time_ = 0;
  size_t bytes_ = 0;
  std::vector<Snapshot> snapshots_;
  std::unordered_map<const void*, Held> blocks_;
};

// Fills an empty conversation with `tokens` (at least one): takes over what `prefixes` has,
// computes the rest and writes the logits [1, vocab_size] after the last. On the way it inserts a
// snapshot after every `stride` tokens (0: none), and one at the end. When the pool has too little
// left, snapshots are dropped for it. Returns what it cost. On error the conversation is empty; the
// errors are those of Engine::Forward.
absl::StatusOr<PrefixCost> PrefillThrough(PrefixCache& prefixes, Engine& engine, KVCache& cache,
                                          absl::Span<const int32_t> tokens, size_t stride,
                                          FloatRows logits, const CancelCheck& cancel = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_PREFIX_CACHE_H_
