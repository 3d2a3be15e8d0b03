// An engine that counts the tokens that it is given, and tells of each batch.
#ifndef INLAY_TESTS_GEMMA_LIKE_COUNTING_ENGINE_H_
#define INLAY_TESTS_GEMMA_LIKE_COUNTING_ENGINE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

#include "cache/cache_bytes.h"
#include "cache/model_identity.h"
#include "gemma_like/engine.h"

namespace inlay {

class CountingEngine final : public Engine {
 public:
  explicit CountingEngine(Engine& engine) : engine_(engine) {}

  // What Identity() returns.
  ModelIdentity identity{.weights_hash = 0x1234, .numerics_version = 7, .instruction_set = "AVX2"};

  // Called first by each Forward.
  std::function<void()> before_forward = nullptr;

  // Since the last call.
  size_t TakeCount() { return std::exchange(tokens_, 0); }

  const EngineInfo& info() const override { return engine_.info(); }
  absl::StatusOr<ModelIdentity> Identity() override { return identity; }
  absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const CacheOptions& options,
                                                       KvType type) const override {
    return engine_.CreateCache(options, type);
  }
  CacheBytes PlanCache(KvType type) const override { return engine_.PlanCache(type); }
  size_t CacheBytesRead(size_t length, KvType type) const override {
    return engine_.CacheBytesRead(length, type);
  }
  absl::Status Forward(absl::Span<const SequenceStep> steps, FloatRows logits,
                       const CancelCheck& cancel, absl::Span<absl::Status> outcomes) override {
    if (before_forward) before_forward();
    for (const SequenceStep& step : steps) tokens_ += step.tokens.size();
    return engine_.Forward(steps, logits, cancel, outcomes);
  }
  absl::Status Embed(absl::Span<const absl::Span<const int32_t>> texts, FloatRows embeddings,
                     const CancelCheck& cancel) override {
    for (const absl::Span<const int32_t> text : texts) tokens_ += text.size();
    return engine_.Embed(texts, embeddings, cancel);
  }

 private:
  Engine& engine_;
  size_t tokens_ = 0;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_COUNTING_ENGINE_H_
