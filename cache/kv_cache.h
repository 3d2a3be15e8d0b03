// One conversation's memory as seen without its config: one length, appends that are transactions,
// rewind, fork, save and load.
#ifndef INLAY_CACHE_KV_CACHE_H_
#define INLAY_CACHE_KV_CACHE_H_

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
class SectionReader;
class SectionWriter;
class Transaction;
struct CacheIdentity;
struct ModelIdentity;

// What a saved conversation was good for.
struct LoadOutcome {
  // Empty: the cache is the saved conversation. Otherwise why its rows are of no use here, as a
  // clause ("it was computed on AVX2, not AVX3"), and its tokens.
  std::string difference;
  std::vector<int32_t> tokens;
};

// The tokens of one conversation and what every layer keeps of them. All layers have the same
// length at all times. One thread at a time may use a cache; different caches, forks of each other
// included, may be used at the same time.
class KVCache {
 public:
  virtual ~KVCache() = default;

  // The kName of the config that the cache was made for.
  virtual absl::string_view config_name() const = 0;

  size_t length() const { return length_; }
  absl::Span<const int32_t> tokens() const { return tokens_.view().first(length_); }
  // No append may make the conversation longer than this.
  size_t max_length() const { return traits_.max_length; }
  // No single append may have more tokens than this; longer ones are split.
  size_t max_append() const { return traits_.max_append; }

  // Checks that `tokens` fit in every layer, and makes room for them. Errors, all without any
  // change: OutOfRange when the length would exceed max_length(), InvalidArgument when there are
  // none or more than max_append(), ResourceExhausted when the block pool or the system has too
  // little memory left, FailedPrecondition when a transaction is open.
  absl::StatusOr<Transaction> Begin(absl::Span<const int32_t> tokens);

  // Every position within so many tokens of the greatest length that the conversation has had can
  // be rewound to; see docs/cache.md.
  size_t rewind_depth() const { return traits_.rewind_depth; }

  // How rows are stored.
  KvType kv_type() const { return traits_.kv_type; }

  // Makes the conversation end before `position`. Exact: what follows has the same bits as if the
  // dropped tokens had never been there. OutOfRange, without any change, when `position` is not in
  // [RewindFloor(), length()]; FailedPrecondition when a transaction is open.
  absl::Status Rewind(size_t position);

  // The lowest position that Rewind accepts now.
  virtual size_t RewindFloor() const = 0;

  // A conversation with the same past that shares this one's memory until either of them writes.
  // ResourceExhausted without memory, FailedPrecondition when a transaction is open.
  absl::StatusOr<std::unique_ptr<KVCache>> Fork() const;

  // Becomes the conversation that `snapshot` is: a fork of this one, or of one with the same config
  // and type of rows. max_length() stays what it was. Errors, all without any change to either:
  // InvalidArgument for a snapshot of another config or type of rows, OutOfRange for one that is
  // longer than max_length(), FailedPrecondition when a transaction is open in either.
  absl::Status Restore(KVCache&& snapshot);

  // Writes the conversation in the format of cache/serialize.h: the tokens, and of each layer what
  // later tokens or a rewind within the guaranteed depth need. `model` is the one that computed it.
  // Errors are the sink's, and FailedPrecondition when a transaction is open.
  absl::Status Save(const ModelIdentity& model, ByteSink& sink) const;

  // Becomes the conversation that was saved: what follows has the bits that it would have had in
  // the one that wrote it. Where anything is not the same that decides these bits (the model, the
  // type of rows, the format's version), this conversation stays as it was and the outcome has the
  // saved tokens, from which it can be computed again. The source must end where the save does.
  //
  // All or nothing: on any error this conversation is as it was. InvalidArgument when the source is
  // something else, of another config or of a later version of the format, OutOfRange when it is
  // longer than max_length() or ends too early, DataLoss when it is damaged, ResourceExhausted when
  // the pool has too little left (both conversations are held until the load has succeeded),
  // FailedPrecondition when a transaction is open, and the source's own.
  absl::StatusOr<LoadOutcome> Load(const ModelIdentity& model, ByteSource& source);

  // What ConfigFingerprint of its config is: a model of that fingerprint may use the cache.
  uint64_t config_fingerprint() const { return traits_.config_fingerprint; }

  // Bytes of the blocks that this cache refers to, those shared with forks included.
  size_t allocated_bytes() const;

  // Calls visit(block, bytes) for each of these blocks, where `block` stands for its identity.
  virtual void VisitBlocks(
      absl::FunctionRef<void(const void* block, size_t bytes)> visit) const = 0;

  // Where its blocks come from; null when it was moved from.
  const std::shared_ptr<BlockPool>& shared_pool() const { return pool_; }

 protected:
  // What a config and its storage policy fix.
  struct Traits {
    size_t max_length = 0;
    size_t max_append = 0;
    size_t rewind_depth = 0;
    size_t vocab_size = 0;
    KvType kv_type = KvType::kF32;
    uint64_t config_fingerprint = 0;  // see cache/fingerprint.h
    uint64_t fingerprint = 0;         // of the config and how its past is stored
  };
  KVCache(std::shared_ptr<BlockPool> pool, const Traits& traits)
      : pool_(std::move(pool)), traits_(traits) {}
  KVCache(const KVCache& other) = default;
  KVCache& operator=(const KVCache& other) = default;
  // What was moved from is empty, and refuses everything but being assigned to or destroyed.
  KVCache(KVCache&& other) noexcept
      : pool_(std::move(other.pool_)),
        traits_(other.traits_),
        open_(other.open_),
        length_(std::exchange(other.length_, 0)),
        tokens_(std::move(other.tokens_)) {
    assert(!open_ && "a cache with an open transaction was moved");
  }
  KVCache& operator=(KVCache&& other) noexcept {
    assert(!open_ && !other.open_ && "a cache with an open transaction was moved");
    pool_ = std::move(other.pool_);
    traits_ = other.traits_;
    length_ = std::exchange(other.length_, 0);
    tokens_ = std::move(other.tokens_);
    return *this;
  }

  // What the layers do: make room for `count` tokens (after an error, which some layers may have
  // escaped, AbortLayers is called), publish them, forget them, go back.
  virtual absl::Status PrepareLayers(size_t count) = 0;
  virtual void CommitLayers(size_t new_length) = 0;
  virtual void AbortLayers() = 0;
  virtual void TruncateLayers(size_t position) = 0;

  // A copy that shares all blocks; may throw std::bad_alloc.
  virtual std::unique_ptr<KVCache> Copy() const = 0;

  // Moves from a cache of the same derived type, which `other` is known to have: fingerprints were
  // compared.
  virtual void TakeOver(KVCache&& other) = 0;

  // One section for each layer. LoadLayers replaces what the layers hold, and may leave some
  // replaced and some not when it fails.
  virtual absl::Status SaveLayers(SectionWriter& writer) const = 0;
  virtual absl::Status LoadLayers(SectionReader& reader, size_t length) = 0;

  BlockPool& pool() { return *pool_; }
  bool transaction_open() const { return open_; }
  const Traits& traits() const { return traits_; }

 private:
  friend class Transaction;

  // FailedPrecondition, saying that the cache cannot be `done` ("saved"), while a transaction is
  // open or when it was moved from.
  absl::Status CheckIdle(absl::string_view done) const;
  CacheIdentity Identity(const ModelIdentity& model) const;
  absl::StatusOr<LoadOutcome> LoadAll(const ModelIdentity& model, ByteSource& source);
  absl::StatusOr<std::vector<int32_t>> LoadTokens(SectionReader& reader, size_t length) const;

  std::shared_ptr<BlockPool>
      pool_;  // first, so that it is destroyed after the blocks that derived classes hold
  Traits traits_;
  bool open_ = false;
  size_t length_ = 0;
  TokenList tokens_;  // length_ published ones, then those of an open transaction
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
