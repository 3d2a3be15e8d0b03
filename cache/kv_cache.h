// The cache of one conversation, independent of its config's type: one length, appends as
// transactions, rewind, fork, save and load.
#ifndef INLAY_CACHE_KV_CACHE_H_
#define INLAY_CACHE_KV_CACHE_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/token_list.h"
#include "ops/attention/kv_type.h"

namespace inlay {

class BlockPool;
class ByteSink;
class ByteSource;
class CacheFollower;
class SectionReader;
class SectionWriter;
class Transaction;
struct CacheIdentity;
struct ModelIdentity;

// The result of loading a saved conversation.
struct LoadOutcome {
  // Empty: the cache now holds the saved conversation. Otherwise a clause that says why its rows
  // cannot be used here ("it was computed on AVX2, not AVX3"), and `tokens` has its tokens.
  std::string difference;
  std::vector<int32_t> tokens;
};

// The tokens of one conversation and every layer's storage for them. All layers have the same
// length at all times. One thread at a time may use a cache; different caches, forks of each other
// included, may be used at the same time.
class KVCache {
 public:
  virtual ~KVCache();

  // The kName of the config that the cache was made for.
  virtual absl::string_view config_name() const = 0;

  size_t length() const { return length_; }
  absl::Span<const int32_t> tokens() const { return tokens_.view().first(length_); }
  // No append may make the conversation longer than this.
  size_t max_length() const { return traits_.max_length; }
  // No single append may have more tokens than this; the caller splits longer ones.
  size_t max_append() const { return traits_.max_append; }

  // Checks that `tokens` fit in every layer, and makes room for them. Errors, all without any
  // change but that RewindFloor() may rise as far as an append makes it rise: OutOfRange when the
  // length would exceed max_length(), InvalidArgument when there are none or more than
  // max_append(), ResourceExhausted when the block pool or the system has too little memory left,
  // FailedPrecondition when a transaction is open.
  absl::StatusOr<Transaction> Begin(absl::Span<const int32_t> tokens);

  // A rewind to a position within this many tokens of the greatest length that the conversation has
  // had, also before it was saved, always succeeds. After Trim, and in a conversation that was
  // loaded from one saved after it or began with a stored prefix, this holds for the tokens that
  // were appended since. See docs/cache.md.
  size_t rewind_depth() const { return traits_.rewind_depth; }

  // How rows are stored.
  KvType kv_type() const { return traits_.kv_type; }

  // Drops the tokens from `position` on. Exact: tokens appended later give the same bits as if the
  // dropped ones had never been there. OutOfRange, without any change, when `position` is greater
  // than length() or CanRewindTo() is false; FailedPrecondition when a transaction is open;
  // ResourceExhausted without the memory to tell the other ranks of a shared model.
  absl::Status Rewind(size_t position);

  // An empty conversation needs nothing of the past, so position 0 is always possible.
  bool CanRewindTo(size_t position) const { return position == 0 || position >= RewindFloor(); }

  // The lowest position but 0 that Rewind accepts now; 0 if all are possible.
  size_t RewindFloor() const { return std::max(floor_, LayersRewindFloor()); }

  // Makes RewindFloor() at least this, which must not be more than length(): where several caches
  // have a part of the layers each, one whose memory ended earlier or that shares other blocks may
  // go back less far than the rest, which must refuse the same rewinds. May be called while a
  // transaction is open.
  void RaiseRewindFloor(size_t floor) {
    assert(floor <= length_);
    floor_ = std::max(floor_, floor);
  }

  // Gives back the memory that only rewinds by more than `rewind` tokens need, for a conversation
  // that is kept and may never be appended to: RewindFloor() may rise to length() - rewind.
  // Everything else stays as it is; the next append takes the memory again. FailedPrecondition,
  // without any change, when a transaction is open.
  absl::Status Trim(size_t rewind);

  // A conversation with the same past that shares this one's memory until either of them writes.
  // ResourceExhausted without memory, FailedPrecondition when a transaction is open.
  absl::StatusOr<std::unique_ptr<KVCache>> Fork() const;

  // Replaces this conversation by `snapshot`: a fork of it, or of one with the same config, row
  // type and pool. The limits of this cache stay unchanged: the pool's and max_length(). Errors,
  // all without any change to either: InvalidArgument for a snapshot of another config, row type or
  // pool, OutOfRange for one that is longer than max_length(), FailedPrecondition when a
  // transaction is open in either.
  absl::Status Restore(KVCache&& snapshot);

  // Writes the conversation in the format of cache/serialize.h: the tokens, and of each layer the
  // rows and states that later tokens or a rewind within the guaranteed depth need, which as many
  // ranks can load. `model` is the one that computed it. Errors are those of the sink, and
  // FailedPrecondition when a transaction is open, or when this cache has one rank's part of the
  // layers and no follower that reaches the others.
  absl::Status Save(const ModelIdentity& model, ByteSink& sink) const;

  // Writes the tokens alone, for a file that is small and written often: Load returns them as of a
  // conversation that has to be computed again.
  absl::Status SaveTokens(const ModelIdentity& model, ByteSink& sink) const;

  // Replaces this conversation by a saved one: tokens computed after it are bit-identical to what
  // the saved conversation would have computed. If anything that determines these bits differs (the
  // model, the row type, the format's version), this conversation stays unchanged and the outcome
  // has the saved tokens, from which the cache can be computed again. The source must end where the
  // saved conversation does.
  //
  // All or nothing: on any error this conversation is unchanged. InvalidArgument when the source is
  // not a saved conversation, or one of another config or a later version of the format, OutOfRange
  // when it is longer than max_length(), DataLoss when it is damaged or ends too early,
  // ResourceExhausted when the pool has too little left (both conversations are held until the load
  // has succeeded), FailedPrecondition as for Save, and the errors of the source.
  absl::StatusOr<LoadOutcome> Load(const ModelIdentity& model, ByteSource& source);

  // What Save writes of the layers, and what Load reads, of a cache that has one rank's part of
  // them: for a CacheFollower. `seed` is of the first checksum. LoadPart replaces a conversation
  // that nobody uses by one of these tokens, and may leave anything in it after an error.
  absl::Status SavePart(uint64_t seed, ByteSink& sink) const;
  absl::Status LoadPart(uint64_t seed, std::vector<int32_t> tokens, ByteSource& source);

  // ConfigFingerprint of the cache's config: models with the same fingerprint may use the cache.
  uint64_t config_fingerprint() const { return traits_.config_fingerprint; }

  // Bytes of the blocks that this cache refers to, those shared with forks included.
  size_t allocated_bytes() const;

  // Calls visit(block, bytes) for each of these blocks, where `block` only identifies it.
  virtual void VisitBlocks(
      absl::FunctionRef<void(const void* block, size_t bytes)> visit) const = 0;

  // Tells `follower` of this cache and of all forks of it from now on; see cache/cache_follower.h.
  void SetFollower(std::shared_ptr<CacheFollower> follower);

  // The pool of the cache's blocks; null after the cache was moved from.
  const std::shared_ptr<BlockPool>& shared_pool() const { return pool_; }

 protected:
  // Set by the config, its storage policy and the CacheOptions.
  struct Traits {
    size_t max_length = 0;
    size_t max_append = 0;
    size_t rewind_depth = 0;
    size_t vocab_size = 0;
    KvType kv_type = KvType::kF32;
    size_t parts = 1;                 // ranks, of which each has a part of the layers
    uint64_t config_fingerprint = 0;  // see cache/fingerprint.h
    uint64_t fingerprint = 0;         // of the config and how its past is stored
  };
  KVCache(std::shared_ptr<BlockPool> pool, const Traits& traits)
      : pool_(std::move(pool)), traits_(traits) {}
  KVCache(const KVCache& other)
      : pool_(other.pool_),
        traits_(other.traits_),
        open_(other.open_),
        length_(other.length_),
        floor_(other.floor_),
        tokens_(other.tokens_) {}
  KVCache& operator=(const KVCache& other) = delete;
  // A cache that was moved from is empty, and may only be assigned to or destroyed.
  KVCache(KVCache&& other) noexcept
      : pool_(std::move(other.pool_)),
        traits_(other.traits_),
        open_(other.open_),
        length_(std::exchange(other.length_, 0)),
        floor_(std::exchange(other.floor_, 0)),
        tokens_(std::move(other.tokens_)) {
    assert(!open_ && "a cache with an open transaction was moved");
  }
  KVCache& operator=(KVCache&& other) noexcept {
    assert(!open_ && !other.open_ && "a cache with an open transaction was moved");
    pool_ = std::move(other.pool_);
    traits_ = other.traits_;
    length_ = std::exchange(other.length_, 0);
    floor_ = std::exchange(other.floor_, 0);
    tokens_ = std::move(other.tokens_);
    return *this;
  }

  // The operations on all layers: make room for `count` tokens (after an error, when some layers
  // may have succeeded, AbortLayers is called), publish them, discard them, truncate, give
  // back what rewinds by more than so many tokens need.
  virtual absl::Status PrepareLayers(size_t count) = 0;
  virtual void CommitLayers(size_t new_length) = 0;
  virtual void AbortLayers() = 0;
  virtual void TruncateLayers(size_t position) = 0;
  virtual void TrimLayers(size_t rewind) = 0;
  // The lowest position to which all layers can be truncated.
  virtual size_t LayersRewindFloor() const = 0;

  // A copy that shares all blocks; may throw std::bad_alloc.
  virtual std::unique_ptr<KVCache> Copy() const = 0;

  // Move-assigns from a cache of the same derived type; the caller has compared the fingerprints.
  virtual void MoveFrom(KVCache&& other) = 0;

  // Write and read one section per layer. A LoadLayers that fails may have replaced the contents of
  // some layers.
  virtual absl::Status SaveLayers(SectionWriter& writer) const = 0;
  virtual absl::Status LoadLayers(SectionReader& reader, size_t length) = 0;

  BlockPool& pool() { return *pool_; }
  bool transaction_open() const { return open_; }

 private:
  friend class Transaction;

  // FailedPrecondition, saying that the cache cannot be `done` ("saved"), while a transaction is
  // open or when it was moved from.
  absl::Status CheckIdle(absl::string_view done) const;
  // The same for a cache that has one rank's part of the layers and no follower.
  absl::Status CheckAllParts(absl::string_view done) const;
  CacheIdentity Identity(const ModelIdentity& model) const;
  absl::Status WriteTokens(const ModelIdentity& model, SectionWriter& writer) const;
  absl::StatusOr<LoadOutcome> LoadAll(const ModelIdentity& model, ByteSource& source);
  absl::Status LoadRows(std::vector<int32_t> tokens, SectionReader& reader);
  absl::StatusOr<std::vector<int32_t>> LoadTokens(SectionReader& reader, size_t length) const;

  // In the base class, so that it is destroyed after the blocks that derived classes hold.
  std::shared_ptr<BlockPool> pool_;
  Traits traits_;
  bool open_ = false;
  size_t length_ = 0;
  size_t floor_ = 0;  // of RaiseRewindFloor; at most length_
  // The first length_ are the conversation's. Any after them are of an open transaction, or were
  // dropped by a rewind.
  TokenList tokens_;
  // Follows this object, whatever is moved or copied into or out of it; most often null.
  std::shared_ptr<CacheFollower> follower_;
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

  // Adds the tokens to the conversation. Cannot fail: everything it needs was reserved by Begin.
  // Once only.
  void Commit();

 private:
  friend class KVCache;
  explicit Transaction(KVCache* cache) : cache_(cache) {}

  KVCache* cache_;
};

}  // namespace inlay

#endif  // INLAY_CACHE_KV_CACHE_H_
