// Perplexity of a text: how well a model predicts it, by the protocol of llama-perplexity.
#ifndef INLAY_GEMMA_LIKE_PERPLEXITY_H_
#define INLAY_GEMMA_LIKE_PERPLEXITY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"

namespace inlay {

// Negative log likelihoods, in nats, of a sequence of tokens.
class LikelihoodSum {
 public:
  void Add(double nll);

  size_t count() const { return count_; }
  double mean() const { return sum_ / static_cast<double>(count_); }
  // Standard error of the mean; 0 for less than two.
  double mean_error() const;
  double perplexity() const;
  // To first order: the perplexity's derivative times the mean's error.
  double perplexity_error() const { return perplexity() * mean_error(); }

 private:
  size_t count_ = 0;
  double sum_ = 0;
  double sum_of_squares_ = 0;
};

struct PerplexityOptions {
  // Tokens of a chunk; at least kSmallestChunk.
  size_t chunk = 256;
  // Evaluates each chunk, rewinds to its start, evaluates it again, rewinds as far as the cache
  // goes back without a snapshot, and evaluates that section again. Each number is then that of the
  // last evaluation, which must be the same.
  bool rewind = false;
};

inline constexpr size_t kSmallestChunk = 4;  // one token of it is scored

// Cuts `tokens` into chunks, drops a last partial one, and makes each a conversation of its own.
// The tokens of a chunk after the first chunk/2 + 1 are scored. `first` (BOS) replaces the first
// token of each chunk, for models that expect it; negative: none is replaced. `on_chunk` receives
// the sum after each chunk. `cache` must be empty and have room for a chunk. InvalidArgument when a
// chunk has fewer than kSmallestChunk tokens, there are fewer tokens than a chunk has, or one is
// outside the vocabulary.
absl::StatusOr<LikelihoodSum> Perplexity(
    Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens, int32_t first,
    const PerplexityOptions& options,
    const std::function<void(const LikelihoodSum& sum)>& on_chunk = nullptr,
    const CancelCheck& cancel = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_PERPLEXITY_H_
