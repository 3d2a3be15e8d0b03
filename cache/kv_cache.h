// One conversation's memory as seen without its config: one length, appends that are transactions,
// rewind and fork.
#ifndef INLAY_CACHE_KV_CACHE_H_
#define INLAY_CACHE_KV_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/block_pool.h"

namespace inlay {

class Transaction;

// The tokens of one conversation and what every layer keeps of them. All layers have the same
// length at all times. One thread at a time may use a cache; different caches, forks of each other
// included, may be used at the same time.
class KVCache {
 public:
  virtual ~KVCache() = default;

  // The kName of the config that the cache was made for.
  virtual absl::string_view config_name() const = 0;

  size_t length() const { return length_; }
  absl::Span<const int32_t> tokens() const { return absl::MakeConstSpan(tokens_).first(length_); }
  // No append may make the conversation longer than this.
  size_t max_length() const { return max_length_; }
  // No single append may have more tokens than this; longer ones are split.
  size_t max_append() const { return max_append_; }

  // Checks that `tokens` fit in every layer, and makes room for them. Errors, all without any
  // change: OutOfRange when the length would exceed max_length(), InvalidArgument when there are
  // none or more than max_append(), ResourceExhausted when the block pool has too little left,
  // FailedPrecondition when a transaction is open.
  absl::StatusOr<Transaction> Begin(absl::Span<const int32_t> tokens);

  // Makes the conversation end before `position`. Exact: what follows has the same bits as if the
  // dropped tokens had never been there. OutOfRange, without any change, when `position` is not in
  // [RewindFloor(), length()]; FailedPrecondition when a transaction is open.
  absl::Status Rewind(size_t position);

  // The lowest position that Rewind accepts now.
  virtual size_t RewindFloor() const = 0;

  // A conversation with the same past that shares this one's memory until either of them writes.
  // Must not be called while a transaction is open.
  virtual std::unique_ptr<KVCache> Fork() const = 0;

  // Becomes what `snapshot`, a fork of this conversation or of one with the same config, is. Any
  // open transaction must have ended.
  virtual void Restore(KVCache&& snapshot) = 0;

  // Bytes of the blocks that this cache refers to, those shared with forks included.
  virtual size_t allocated_bytes() const = 0;

 protected:
  KVCache(std::shared_ptr<BlockPool> pool, size_t max_length, size_t max_append)
      : pool_(std::move(pool)), max_length_(max_length), max_append_(max_append) {}
  KVCache(const KVCache& other) = default;
  KVCache(KVCache&& other) noexcept = default;
  KVCache& operator=(const KVCache& other) = default;
  KVCache& operator=(KVCache&& other) noexcept = default;

  // What the layers do: make room for `count` tokens or change nothing, publish them, forget them,
  // go back.
  virtual absl::Status PrepareLayers(size_t count) = 0;
  virtual void CommitLayers(size_t new_length) = 0;
  virtual void AbortLayers() = 0;
  virtual void TruncateLayers(size_t position) = 0;

  BlockPool& pool() { return *pool_; }
  bool transaction_open() const { return open_; }

 private:
  friend class Transaction;

  std::shared_ptr<BlockPool>
      pool_;  // first, so that it is destroyed after the blocks that derived classes hold
  size_t max_length_;
  size_t max_append_;
  bool open_ = false;
  size_t length_ = 0;
  std::vector<int32_t> tokens_;  // length_ published ones, then those of an open transaction
};

// An append in progress: rows are being written beyond the cache's length. Commit publishes them
// all; destruction without Commit publishes none. Must not outlive its cache, which must not be
// moved meanwhile.
class Transaction {
 public:
  Transaction(Transaction&& other) noexcept : cache_(std::exchange(other.cache_, nullptr)) {}
  Transaction& operator=(Transaction&& other) noexcept {
    std::swap(cache_, other.cache_);
    return *this;
  }
  ~Transaction();

  // Makes the tokens part of the conversation. Cannot fail: everything it needs was reserved by
  // Begin. Once only.
  void Commit();

 private:
  friend class KVCache;
  explicit Transaction(KVCache* cache) : cache_(cache) {}

  KVCache* cache_;
};

}  // namespace inlay

#endif  // INLAY_CACHE_KV_CACHE_H_
