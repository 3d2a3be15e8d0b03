#include "gemma_like/prefix_cache.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "cache/out_of_memory.h"
#include "gemma_like/generate.h"
#include "io/status_macros.h"

namespace inlay {
namespace {

size_t CommonPrefix(absl::Span<const int32_t> a, absl::Span<const int32_t> b) {
  const size_t most = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(most), b.begin()).first -
      a.begin());
}

}  // namespace

size_t PrefixCache::Usable(const KVCache& snapshot, absl::Span<const int32_t> tokens) {
  if (tokens.empty()) return 0;
  const size_t common = CommonPrefix(snapshot.tokens(), tokens.first(tokens.size() - 1));
  return common >= snapshot.RewindFloor() ? common : 0;
}

PrefixCache::Best PrefixCache::FindBest(absl::Span<const int32_t> tokens) const {
  Best best;
  for (size_t i = 0; i < snapshots_.size(); ++i) {
    const size_t length = Usable(*snapshots_[i].cache, tokens);
    if (length > best.length) best = {i, length};
  }
  return best;
}

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

void PrefixCache::Drop(size_t index) {
  Count(*snapshots_[index].cache, /*add=*/false);
  std::swap(snapshots_[index], snapshots_.back());
  snapshots_.pop_back();
}

bool PrefixCache::Insert(const KVCache& cache) {
  if (cache.length() == 0) return true;
  const absl::StatusOr<bool> kept =
      OrOutOfMemory("a snapshot", [&]() -> absl::StatusOr<bool> { return InsertSnapshot(cache); });
  if (kept.ok()) return *kept;
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(blocks_, [](const auto& block) { return block.second.snapshots == 0; });
  return false;
}

bool PrefixCache::InsertSnapshot(const KVCache& cache) {
  std::unique_ptr<KVCache> snapshot = cache.Fork();
  std::lock_guard<std::mutex> lock(mutex_);
  if (snapshot->allocated_bytes() > budget_) return false;
  // All that may find no memory comes first, so that nothing is done by half.
  snapshot->VisitBlocks([&](const void* block, size_t) { blocks_.try_emplace(block); });
  snapshots_.reserve(snapshots_.size() + 1);
  Count(*snapshot, /*add=*/true);
  snapshots_.push_back({std::move(snapshot), ++time_});
  // One of the same tokens is replaced, so that the newer one's way back counts.
  for (size_t i = 0; i + 1 < snapshots_.size(); ++i) {
    if (snapshots_[i].cache->tokens() == cache.tokens()) {
      Drop(i);
      break;
    }
  }
  while (bytes_ > budget_) {
    const auto oldest =
        std::min_element(snapshots_.begin(), snapshots_.end(),
                         [](const Snapshot& a, const Snapshot& b) { return a.used < b.used; });
    Drop(static_cast<size_t>(oldest - snapshots_.begin()));
  }
  return true;
}

PrefixCost PrefixCache::Cost(absl::Span<const int32_t> tokens) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const size_t reused = FindBest(tokens).length;
  return {.reused = reused, .computed = tokens.size() - reused};
}

std::unique_ptr<KVCache> PrefixCache::Take(absl::Span<const int32_t> tokens) {
  std::lock_guard<std::mutex> lock(mutex_);
  const Best best = FindBest(tokens);
  if (best.length == 0) return nullptr;
  Snapshot& snapshot = snapshots_[best.index];
  snapshot.used = ++time_;
  std::unique_ptr<KVCache> cache = snapshot.cache->Fork();
  [[maybe_unused]] const absl::Status status = cache->Rewind(best.length);
  assert(status.ok());  // Usable asked whether it can be
  return cache;
}

bool PrefixCache::DropOldest() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (snapshots_.empty()) return false;
  const auto oldest =
      std::min_element(snapshots_.begin(), snapshots_.end(),
                       [](const Snapshot& a, const Snapshot& b) { return a.used < b.used; });
  Drop(static_cast<size_t>(oldest - snapshots_.begin()));
  return true;
}

size_t PrefixCache::snapshots() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return snapshots_.size();
}

size_t PrefixCache::bytes() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return bytes_;
}

absl::StatusOr<PrefixCost> PrefillThrough(PrefixCache& prefixes, Engine& engine, KVCache& cache,
                                          absl::Span<const int32_t> tokens, size_t stride,
                                          FloatRows logits, const CancelCheck& cancel) {
  assert(cache.length() == 0);
  INLAY_RETURN_IF_ERROR(CheckPrompt(cache, tokens));
  std::unique_ptr<KVCache> empty;
  INLAY_RETURN_IF_ERROR(OrOutOfMemory("a snapshot", [&] {
    empty = cache.Fork();
    if (std::unique_ptr<KVCache> beginning = prefixes.Take(tokens); beginning != nullptr) {
      return cache.Restore(std::move(*beginning));
    }
    return absl::OkStatus();
  }));
  const PrefixCost cost = {.reused = cache.length(), .computed = tokens.size() - cache.length()};
  while (cache.length() < tokens.size()) {
    const size_t length = cache.length();
    const size_t next = stride == 0 ? tokens.size() : (length / stride + 1) * stride;
    const size_t count = std::min(next, tokens.size()) - length;
    const bool last = length + count == tokens.size();
    absl::Status status = Prefill(engine, cache, tokens.subspan(length, count),
                                  last ? logits : FloatRows(nullptr, 0, logits.cols), cancel);
    // Memory that snapshots hold is there for those who need it now.
    if (absl::IsResourceExhausted(status) && prefixes.DropOldest()) continue;
    if (!status.ok()) {
      status.Update(cache.Restore(std::move(*empty)));
      return status;
    }
    prefixes.Insert(cache);
  }
  return cost;
}

}  // namespace inlay
