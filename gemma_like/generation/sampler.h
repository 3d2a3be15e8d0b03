// Samples the next token from logits.
#ifndef INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_
#define INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "configs/text_defaults.h"

namespace inlay {

// A token and how likely the model finds it.
struct TokenChance {
  int32_t token;
  // The natural logarithm of the model's own probability, before any sampling option.
  float logprob;

  friend bool operator==(const TokenChance&, const TokenChance&) = default;
};

struct ChosenToken {
  int32_t token;
  float logprob;
  std::vector<TokenChance> top;  // the most likely tokens in its place, as many as were asked for

  friend bool operator==(const ChosenToken&, const ChosenToken&) = default;
};

// Goes up with every change after which the same logits and options may give another token.
inline constexpr int kSamplerVersion = 1;

struct SamplingOptions {
  float temperature = 0.8f;  // 0: always the largest logit
  int top_k = 40;            // only the top_k largest logits; 0: all
  float top_p = 0.95f;       // of these, the fewest whose probabilities add up to top_p; 1: all
  float min_p = 0.0f;        // and only those with at least this share of the largest probability
  float repeat_penalty = 1.0f;  // divides positive and multiplies negative logits of recent tokens
                                // (Keskar et al. 2019)
  int repeat_last_n = 64;       // how many last tokens count as recent; 0: none
  // Of tokens that are in the answer, subtracted from the logit: once, and as often as they are.
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::vector<std::pair<int32_t, float>> logit_bias = {};  // added to the logits of these tokens
  uint64_t seed = 0;
  uint32_t choice = 0;  // tells several answers to one prompt apart that have the same seed

  static SamplingOptions From(const SamplingDefaults& defaults);
};

// InvalidArgument naming the option, its value and its range when one is outside of it.
absl::Status CheckSampling(const SamplingOptions& options);

// The error for logits, after the token at `position`, that are not all finite: no token can be
// chosen from them.
absl::Status NotFinite(size_t position);

// The token with its probability by all of the logits, and the `top` most likely tokens, or all
// where there are fewer. The log probability of a token that has no logit is minus infinity.
ChosenToken ChanceOf(absl::Span<const float> logits, int32_t token, size_t top);

// Samples depend only on options, logits and history: a fork, a rewound conversation and another
// machine choose the same tokens.
class Sampler {
 public:
  // `options` have passed CheckSampling, but for what WithoutSuppressed adds.
  explicit Sampler(const SamplingOptions& options) : options_(options) {}

  // The next token. Applies bias and penalties, top-k, top-p, min-p, then temperature; top-p and
  // min-p use the probabilities at temperature 1, so that the temperature does not change which
  // tokens remain. `history` holds the tokens before it, the last `answer` of which are the
  // answer's; their number is the position of the random number. If `allowed` is not empty, only
  // tokens t with bit t % 64 of its word t / 64 are chosen, as if there were no others; at least
  // one of them has a logit. DataLoss when a logit is NaN or infinite.
  absl::StatusOr<int32_t> Sample(absl::Span<const float> logits, absl::Span<const int32_t> history,
                                 size_t answer = 0, absl::Span<const uint64_t> allowed = {});

 private:
  absl::Span<const float> Adjust(absl::Span<const float> logits, absl::Span<const int32_t> history,
                                 size_t answer, absl::Span<const uint64_t> allowed);
  void PenalizeRepeated(absl::Span<const int32_t> recent);
  void PenalizePresent(absl::Span<const int32_t> answer);

  SamplingOptions options_;
  std::vector<float> adjusted_;  // a copy, when there is a bias, a penalty or a choice of tokens
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_SAMPLER_H_
