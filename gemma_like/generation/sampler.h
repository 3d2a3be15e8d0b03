// Samples the next token from logits.
#ifndef INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_
#define INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "configs/text_defaults.h"

namespace inlay {

struct SamplingOptions {
  float temperature = 0.8f;  // 0: always the largest logit
  int top_k = 40;            // only the top_k largest logits; 0: all
  float top_p = 0.95f;       // of these, the fewest whose probabilities add up to top_p; 1: all
  float min_p = 0.0f;        // and only those with at least this share of the largest probability
  float repeat_penalty = 1.0f;  // divides positive and multiplies negative logits of recent tokens
                                // (Keskar et al. 2019)
  int repeat_last_n = 64;       // how many last tokens count as recent; 0: none
  uint64_t seed = 0;

  static SamplingOptions From(const SamplingDefaults& defaults);
};

// InvalidArgument naming the option, its value and its range when one is outside of it.
absl::Status CheckSampling(const SamplingOptions& options);

// The error for logits, after the token at `position`, that are not all finite: no token can be
// chosen from them.
absl::Status NotFinite(size_t position);

// Samples depend only on options, logits, history and the number of the choice: a fork, a rewound
// conversation and another machine choose the same tokens.
class Sampler {
 public:
  // `options` have passed CheckSampling.
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // The next token. Applies penalty, top-k, top-p, min-p, then temperature; top-p and min-p use the
  // probabilities at temperature 1, so that the temperature does not change which tokens remain.
  // `history` holds the tokens before it, and their number is the position of the random number;
  // `choice` distinguishes several tokens drawn for one position. DataLoss when a logit is NaN or
  // infinite.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits, absl::Span<const int32_t> history,
                                 uint32_t choice = 0);

 private:
  absl::Span<const float> Penalize(absl::Span<const float> logits,
                                   absl::Span<const int32_t> history);

  SamplingOptions options_;
  std::vector<float> penalized_;  // a copy, when there is a penalty
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_
