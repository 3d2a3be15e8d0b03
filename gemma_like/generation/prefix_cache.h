// Snapshots of conversations, reused by conversations that share a prefix with them.
#ifndef INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_
#define INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/prefix_index.h"

namespace inlay {

// The cost of starting a conversation with given tokens.
struct PrefixCost {
  size_t reused = 0;    // tokens whose state a snapshot holds
  size_t computed = 0;  // tokens that the model has to compute
  // The first tokens of any stored snapshot's, at least `reused`: where this conversation parts
  // from others, and others are likely to part again.
  size_t shared = 0;
  // How many tokens an earlier prompt had after these: its tail, which this text has otherwise, as
  // agents write some of the last lines of their prompts anew for each turn. 0 where not known.
  size_t tail = 0;
  // Whether it was expected to part there: the reused tokens are all of a snapshot before a tail.
  // `shared` is more where the tail is shorter than the one before it.
  bool at_tail = false;
};

// By how many tokens at least a snapshot of a text's end can be rewound: the next text may end the
// last word otherwise, and is then tokenized otherwise.
inline constexpr size_t kEndRewind = 4;

// What a snapshot is of.
struct SnapshotPlace {
  // By how many tokens it can be rewound if the conversation can, and not always by more.
  size_t rewind = kEndRewind;
  size_t prompt = 0;         // the length of the prompt that it is a part of, or ends; 0: not known
  bool before_tail = false;  // whether the rest of the prompt is a tail, as in PrefixCost
  // Whether it is of no place of its own, but one of several on the way: a longer one of the same
  // beginning that can be rewound as far replaces it.
  bool on_the_way = false;
};

// Snapshots (forks) of conversations within a budget of bytes; the least recently used snapshot is
// evicted first. Memory that snapshots share counts once. All caches given to one PrefixCache have
// the same engine, row type and pool. Safe to use from several threads.
//
// A snapshot of length n serves a conversation that starts with its n tokens. It also serves one
// that diverges earlier, if it can be rewound exactly to that position: with full attention only,
// to any position; with other models, not below RewindFloor(). For those it therefore pays to
// insert snapshots at intervals within a long prompt, as PromptSteps does. Where all attention is
// full, the latest of these alone stays, and only until a later one of the prompt is stored: the
// others would serve nobody, but each would have a table of all blocks before it.
//
// Owners (0 or more) share the budget, but no snapshot of one serves another: what a prompt costs
// tells nothing about others' prompts.
class PrefixCache {
 public:
  explicit PrefixCache(size_t budget_bytes) : budget_(budget_bytes) {}

  // Stores a snapshot of the conversation, trimmed to what its place needs; an empty one is
  // ignored. False, without any change, when the snapshot alone exceeds the budget or there is no
  // memory for it.
  bool Insert(const KVCache& cache, int32_t owner = 0, const SnapshotPlace& place = {});

  // What a conversation with these tokens would cost now. The last token is always computed, since
  // its logits are needed.
  PrefixCost Cost(absl::Span<const int32_t> tokens, int32_t owner = 0) const;

  // A conversation with the longest stored prefix of `tokens`, at most all but the last; null when
  // there is none, or no memory for it. The snapshot stays stored.
  std::unique_ptr<KVCache> Take(absl::Span<const int32_t> tokens, int32_t owner = 0);

  // Evicts the least recently used snapshot; false when there is none. For callers that need the
  // pool's memory for something else.
  bool DropOldest();

  // Calls `visit` with each snapshot and its owner, the most recently used one first. It must not
  // use this object.
  void Visit(absl::FunctionRef<void(const KVCache& snapshot, int32_t owner)> visit) const;

  size_t snapshots() const;
  size_t bytes() const;  // of all blocks held, each counted once
  size_t budget_bytes() const { return budget_; }

 private:
  struct Snapshot {
    std::unique_ptr<KVCache> cache;
    int32_t owner = 0;
    SnapshotPlace place;
    std::list<Snapshot>::iterator self;
  };
  struct Held {
    size_t snapshots = 0;  // that refer to the block
    size_t bytes = 0;
  };
  void Count(const KVCache& cache, bool add);
  // Removes a snapshot that is no longer in the index.
  void Drop(Snapshot* snapshot);
  bool DropOldestSnapshot();
  // Removes those on the way to this one, which is stored, that serve nobody whom it does not.
  void DropReplacedBy(const Snapshot& snapshot);
  bool InsertSnapshot(const KVCache& cache, int32_t owner, const SnapshotPlace& place);

  const size_t budget_;
  mutable std::mutex mutex_;
  size_t bytes_ = 0;
  std::list<Snapshot> snapshots_;  // the most recently used one last
  // By owner, of their tokens; the floor is the lowest position to rewind to.
  std::unordered_map<int32_t, PrefixIndex<Snapshot*>> indices_;
  std::unordered_map<const void*, Held> blocks_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_PREFIX_CACHE_H_
