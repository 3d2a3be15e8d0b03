// Drafts by a second, smaller model with the same vocabulary.
#ifndef INLAY_GEMMA_LIKE_GENERATION_MODEL_DRAFTER_H_
#define INLAY_GEMMA_LIKE_GENERATION_MODEL_DRAFTER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/cache_options.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/generation/draft_policy.h"
#include "gemma_like/generation/draft_times.h"
#include "gemma_like/generation/sampler.h"
#include "gemma_like/generation/speculate.h"
#include "io/tokenizer/tokenizer.h"
#include "ops/attention/kv_type.h"

namespace inlay {

// Whether one model can draft for the other. InvalidArgument when it embeds texts, and where the
// vocabularies differ, naming the first token that does, or their sizes if they have no texts.
absl::Status CheckDraftModel(const Engine& model, const Tokenizer& tokenizer,
                             const Engine& draft_model, const Tokenizer& draft_tokenizer);

// What drafts of one model will cost the other, from the bytes of weights that a token reads:
// decoding large models waits for memory.
DraftCosts CostsOfDrafts(const Engine& model, const Engine& draft_model);

// Whether the costs of drafts are those given, or soon those measured. Only how much is drafted
// depends on them, no answer does.
enum class DraftCostsAre { kMeasured, kFixed };

// Speculative decoding with a draft model (Leviathan et al. 2023; Chen et al. 2023), but exact: the
// draft model draws with the random numbers with which the model will draw, so that where the two
// agree on what is likely they mostly agree on the token, at any temperature; what the model would
// not have drawn itself is dropped. How far to draft is learned, see DraftPolicy.
//
// It keeps a conversation of its own, which follows those that it drafts for: what two successive
// texts share is not computed again. A long text that is new to it is read in slices, one in each
// call, during which it drafts nothing. Where memory ends, too, it drafts nothing.
class ModelDrafter final : public Drafter {
 public:
  // Both models passed CheckDraftModel; the draft model must outlive the drafter. `vocab_size`
  // is the model's, of which no token beyond is drafted. The errors of Engine::CreateCache.
  static absl::StatusOr<std::unique_ptr<ModelDrafter>> Create(
      Engine& draft_model, size_t vocab_size, const DraftCosts& costs, const CacheOptions& options,
      KvType type = kDefaultKvType, DraftCostsAre are = DraftCostsAre::kMeasured);

  void StartAnswer(const SamplingOptions& sampling, size_t begin) override;
  void Pause() override;
  std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) override;

 private:
  using Clock = std::chrono::steady_clock;

  ModelDrafter(Engine& draft_model, size_t vocab_size, const DraftCosts& costs,
               std::unique_ptr<KVCache> empty, std::unique_ptr<KVCache> cache, DraftCostsAre are);

  std::vector<int32_t> DraftNext(absl::Span<const int32_t> tokens, size_t most);

  // Learns from what of the last draft is in the text now.
  void LearnFrom(absl::Span<const int32_t> tokens);
  // Makes the conversation the text, after which the logits are then. Returns how many tokens it
  // had to read for that; 0: it is not there yet, or cannot be.
  size_t Follow(absl::Span<const int32_t> tokens);
  bool Append(absl::Span<const int32_t> tokens, size_t logit_rows);
  bool Empty();

  Engine& draft_model_;
  const std::unique_ptr<KVCache> empty_;
  const std::unique_ptr<KVCache> cache_;
  std::vector<float> logits_;  // from the first draft on
  size_t drawn_;               // logits from which tokens are drawn
  Sampler sampler_{SamplingOptions()};
  size_t answer_begin_ = 0;
  const DraftCosts assumed_;
  const bool measures_;
  DraftTimes times_;
  size_t calls_ = 0;             // of Draft, for this answer
  Clock::time_point last_call_;  // its end
  DraftPolicy policy_;
  std::vector<int32_t> text_;  // with the last draft
  size_t drafted_from_ = 0;    // its position in the text
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_MODEL_DRAFTER_H_
