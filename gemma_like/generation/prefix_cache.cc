#include "gemma_like/generation/prefix_cache.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"

namespace inlay {
namespace {

// The last token is always computed, since its logits are needed.
absl::Span<const int32_t> WithoutLast(absl::Span<const int32_t> tokens) {
  return tokens.first(tokens.size() - std::min<size_t>(tokens.size(), 1));
}

}  // namespace

void PrefixCache::Count(const KVCache& cache, bool add) {
  cache.VisitBlocks([&](const void* block, size_t bytes) {
    Held& held = blocks_[block];
    if (add) {
      if (held.snapshots++ == 0) bytes_ += held.bytes = bytes;
    } else if (--held.snapshots == 0) {
      bytes_ -= bytes;
      blocks_.erase(block);
    }
  });
}

void PrefixCache::Drop(Snapshot* snapshot) {
  Count(*snapshot->cache, /*add=*/false);
  snapshots_.erase(snapshot->self);
}

bool PrefixCache::DropOldestSnapshot() {
  if (snapshots_.empty()) return false;
  const Snapshot& oldest = snapshots_.front();
  indices_.find(oldest.owner)->second.Erase(oldest.cache->tokens());
  Drop(&snapshots_.front());
  return true;
}

void PrefixCache::DropReplacedBy(const Snapshot& snapshot) {
  PrefixIndex<Snapshot*>& index = indices_.find(snapshot.owner)->second;
  const absl::Span<const int32_t> tokens = snapshot.cache->tokens();
  const size_t floor = snapshot.cache->RewindFloor();
  const auto is_replaced = [&](const Snapshot* shorter, size_t shorter_floor) {
    return shorter->place.on_the_way && floor <= shorter_floor;
  };
  while (Snapshot* const shorter = index.Beginning(tokens, is_replaced)) {
    index.Erase(shorter->cache->tokens());
    Drop(shorter);
  }
}

bool PrefixCache::Insert(const KVCache& cache, int32_t owner, const SnapshotPlace& place) {
  if (cache.length() == 0) return true;
  const absl::StatusOr<bool> kept = OrOutOfMemory(
      "a snapshot", [&]() -> absl::StatusOr<bool> { return InsertSnapshot(cache, owner, place); });
  if (kept.ok()) return *kept;
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(blocks_, [](const auto& block) { return block.second.snapshots == 0; });
  return false;
}

bool PrefixCache::InsertSnapshot(const KVCache& cache, int32_t owner, const SnapshotPlace& place) {
  absl::StatusOr<std::unique_ptr<KVCache>> forked = cache.Fork();
  if (!forked.ok()) return false;
  std::unique_ptr<KVCache> snapshot = *std::move(forked);
  if (!snapshot->Trim(place.rewind).ok()) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  if (snapshot->allocated_bytes() > budget_) return false;
  // All allocations come first, so that a failure leaves nothing half done.
  snapshot->VisitBlocks([&](const void* block, size_t) { blocks_.try_emplace(block); });
  std::list<Snapshot> added;
  added.emplace_back();
  Snapshot& kept = added.back();
  // A snapshot of the same tokens is replaced, so that the newer one's rewind floor applies.
  Snapshot* replaced = indices_[owner].Insert(snapshot->tokens(), snapshot->RewindFloor(), &kept);
  Count(*snapshot, /*add=*/true);
  kept = {std::move(snapshot), owner, place, added.begin()};
  snapshots_.splice(snapshots_.end(), added);
  if (replaced != nullptr) Drop(replaced);
  DropReplacedBy(kept);
  while (bytes_ > budget_) DropOldestSnapshot();
  return true;
}

PrefixCost PrefixCache::Cost(absl::Span<const int32_t> tokens, int32_t owner) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto index = indices_.find(owner);
  PrefixCost cost{.computed = tokens.size()};
  if (index == indices_.end()) return cost;
  const auto best = index->second.Find(WithoutLast(tokens));
  cost.reused = best.length;
  cost.computed = tokens.size() - cost.reused;
  cost.shared = index->second.Shared(tokens);
  if (const Snapshot* beyond = index->second.Beyond(tokens); beyond != nullptr) {
    cost.tail = beyond->place.prompt - std::min(beyond->place.prompt, cost.shared);
  }
  cost.at_tail = cost.reused > 0 && best.value->place.before_tail &&
                 best.value->cache->length() == cost.reused;
  return cost;
}

std::unique_ptr<KVCache> PrefixCache::Take(absl::Span<const int32_t> tokens, int32_t owner) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto index = indices_.find(owner);
  if (index == indices_.end()) return nullptr;
  const auto best = index->second.Find(WithoutLast(tokens));
  if (best.length == 0) return nullptr;
  absl::StatusOr<std::unique_ptr<KVCache>> cache = best.value->cache->Fork();
  if (!cache.ok()) return nullptr;
  // The index has checked its rewind floor, but those who follow the cache may have no memory.
  if (!(*cache)->Rewind(best.length).ok()) return nullptr;
  snapshots_.splice(snapshots_.end(), snapshots_, best.value->self);
  return *std::move(cache);
}

bool PrefixCache::DropOldest() {
  std::lock_guard<std::mutex> lock(mutex_);
  return DropOldestSnapshot();
}

void PrefixCache::Visit(
    absl::FunctionRef<void(const KVCache& snapshot, int32_t owner)> visit) const {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto at = snapshots_.rbegin(); at != snapshots_.rend(); ++at) visit(*at->cache, at->owner);
}

size_t PrefixCache::snapshots() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return snapshots_.size();
}

size_t PrefixCache::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

}  // namespace inlay
