// The run-time interface to a model of any config, which tools and servers call per step, never per
// op.
#ifndef INLAY_GEMMA_LIKE_ENGINE_H_
#define INLAY_GEMMA_LIKE_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/cache_options.h"
#include "cache/kv_cache.h"
#include "configs/text_defaults.h"
#include "gemma_like/token_work.h"
#include "ops/attention/kv_type.h"
#include "ops/views.h"

namespace inlay {

class Ranks;
class Team;
struct CacheBytes;
struct ModelIdentity;

// The most tokens that EngineOptions::max_batch can allow. Scratch memory is proportional to them,
// and its size must fit in a size_t, and the rows of a batch in an int32_t.
inline constexpr size_t kMostBatch = size_t{1} << 20;

struct EngineOptions {
  size_t threads = 1;  // the caller's included; 0: one for each of UsableCores()
  // The threads to compute with, which models may share; nullptr: a new team of `threads`.
  std::shared_ptr<Team> team = nullptr;
  size_t max_batch = 512;  // tokens of one Forward, 1 to kMostBatch; sizes the scratch memory
  // The group that computes the model together; nullptr: this process alone. All ranks load the
  // same file and then make the same calls on conversations of the same past. Results of Forward
  // are complete at the first rank. A step's cancellation is the first rank's.
  std::shared_ptr<Ranks> ranks = nullptr;
  bool check_tensors = false;  // refuse weights that are NaN or infinite; see check_tensors.h
  bool hash_weights = false;   // in the background from the start, for callers of Identity()
  // Told now and then of the load, in bytes of matrices that are packed; see base/progress.h.
  std::function<void(uint64_t done, uint64_t total)> progress = nullptr;
};

// The properties of a model that callers of the forward pass need.
struct EngineInfo {
  absl::string_view config_name;
  uint64_t config_fingerprint = 0;  // caches must have the same; see cache/fingerprint.h
  size_t vocab_size = 0;
  size_t layers = 0;
  size_t max_batch = 0;
  size_t context_length = 0;  // in tokens: the trained length according to the file
  // Of a model that embeds texts, which computes no logits; 0: it computes logits. Its texts fit in
  // one batch: context_length is at most max_batch.
  size_t embedding_dim = 0;
  size_t ranks = 1;  // that compute it together
  ChatTemplate chat_template = ChatTemplate::kNone;
  SamplingDefaults sampling;  // the file's where it has any, else the config's
  ModelWork work;
};

// Polled before each layer and, for a whole pass, before the output; true stops it.
using CancelCheck = std::function<bool()>;

// One sequence's next tokens: its segment of a batch.
struct SequenceStep {
  KVCache* cache = nullptr;
  absl::Span<const int32_t> tokens;  // not those of a cache, which move as it grows
  size_t logit_rows = 1;             // logits are computed after each of the last logit_rows tokens
  CancelCheck cancel = nullptr;      // of this step alone
};

// The most texts of one Embed.
inline constexpr size_t kMostTexts = 64;

// One set of weights for any number of conversations. Calls from different threads are safe and run
// one after the other.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual const EngineInfo& info() const = 0;

  // Everything besides the row type that decides the bits of this model's conversations. The first
  // call hashes the weights (see gemma_like/files/weights_hash.h); Forward does not wait for it.
  // DataLoss when the model's file has become shorter; ResourceExhausted without memory.
  virtual absl::StatusOr<ModelIdentity> Identity() = 0;

  // An empty conversation whose rows are stored as `type`. ResourceExhausted without memory.
  virtual absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(
      const CacheOptions& options, KvType type = kDefaultKvType) const = 0;

  // How much memory such a conversation needs, where several ranks compute the model at the one
  // that needs most; see cache/cache_bytes.h.
  virtual CacheBytes PlanCache(KvType type = kDefaultKvType) const = 0;

  // Bytes of its cache that the token after `length` others reads.
  virtual size_t CacheBytesRead(size_t length, KvType type = kDefaultKvType) const = 0;

  // Appends each step's tokens to its conversation and writes logits [sum of logit_rows,
  // vocab_size], step after step. Prefill, decode, batches of conversations and the checking of
  // drafted tokens are all this call; a token's logits have the same bits in each of them.
  //
  // On any error that it returns, no conversation has advanced: InvalidArgument for a batch that is
  // empty or has more than max_batch tokens, an id outside the vocabulary, a step without a cache,
  // a cache of another config or one given twice, a logits view of the wrong shape, or another
  // number of outcomes than of steps; Cancelled when `cancel` returned true; DataLoss when the
  // model's file has become shorter; ResourceExhausted without memory; FailedPrecondition from a
  // model that embeds texts.
  //
  // An error of one step alone, from KVCache::Begin or Cancelled by its own check, ends the whole
  // batch in the same way if `outcomes` is empty. Otherwise outcomes[i] is the status of steps[i]:
  // steps that failed have not advanced, and their rows of logits are undefined; the others have
  // advanced.
  virtual absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                               const CancelCheck& cancel = nullptr,
                               absl::Span<absl::Status> outcomes = {}) = 0;

  // Writes the embedding of each text, [texts, embedding_dim], as vectors of length 1, or of zeros
  // if that is what the weights give. A text's embedding has the same bits whatever other texts are
  // in the batch. See gemma_like/embed.h for any number of texts.
  //
  // FailedPrecondition from a model that computes logits; InvalidArgument for no text or more than
  // kMostTexts, one that is empty or longer than the context, more than max_batch tokens in all, an
  // id outside the vocabulary, or a view of the wrong shape; Cancelled, DataLoss and
  // ResourceExhausted as for Forward.
  virtual absl::Status Embed(absl::Span<const absl::Span<const int32_t>> texts,
                             FloatRows embeddings, const CancelCheck& cancel = nullptr) = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_ENGINE_H_
