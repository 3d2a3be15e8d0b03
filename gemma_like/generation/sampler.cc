#include "gemma_like/generation/sampler.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/generation/counter_random.h"
#include "ops/cpu/float_environment.h"
#include "ops/row_kernels.h"
#include "ops/softmax.h"

namespace inlay {
namespace {

absl::Status OutOfRange(absl::string_view option, double value, absl::string_view range) {
  return absl::InvalidArgumentError(absl::StrCat(option, " is ", value, ", not ", range));
}

// The number of candidates to keep: the first ones whose probabilities add up to `top_p`, and of
// these the ones with at least `min_p` of the largest. Candidates are sorted, largest first, and at
// least one is kept. Their probabilities are weights[i] / sum(weights), weights[0] = 1.
size_t Cut(absl::Span<const double> weights, float top_p, float min_p) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t kept = 0;
  double reached = 0;
  while (kept < weights.size()) {
    if (kept > 0 && (reached >= double{top_p} * sum || weights[kept] < min_p)) break;
    reached += weights[kept];
    ++kept;
  }
  return kept;
}

}  // namespace

SamplingOptions SamplingOptions::From(const SamplingDefaults& defaults) {
  SamplingOptions options;
  options.temperature = defaults.temperature;
  options.top_k = defaults.top_k;
  options.top_p = defaults.top_p;
  options.min_p = defaults.min_p;
  options.repeat_penalty = defaults.repeat_penalty;
  options.repeat_last_n = defaults.repeat_last_n;
  return options;
}

absl::Status CheckSampling(const SamplingOptions& options) {
  // Written so that NaN fails.
  if (!(options.temperature >= 0 && options.temperature <= 100)) {
    return OutOfRange("temperature", options.temperature, "between 0 and 100");
  }
  if (options.top_k < 0) return OutOfRange("top-k", options.top_k, "0 or more");
  if (!(options.top_p > 0 && options.top_p <= 1))
    return OutOfRange("top-p", options.top_p, "above 0 and at most 1");
  if (!(options.min_p >= 0 && options.min_p <= 1))
    return OutOfRange("min-p", options.min_p, "between 0 and 1");
  // The least is the server's; far less would make logits infinite.
  if (!(options.repeat_penalty >= 0.01f && options.repeat_penalty <= 100))
    return OutOfRange("repeat-penalty", options.repeat_penalty, "between 0.01 and 100");
  if (options.repeat_last_n < 0)
    return OutOfRange("repeat-last-n", options.repeat_last_n, "0 or more");
  if (!(options.presence_penalty >= -100 && options.presence_penalty <= 100))
    return OutOfRange("presence-penalty", options.presence_penalty, "between -100 and 100");
  if (!(options.frequency_penalty >= -100 && options.frequency_penalty <= 100))
    return OutOfRange("frequency-penalty", options.frequency_penalty, "between -100 and 100");
  for (const auto& [token, bias] : options.logit_bias) {
    if (!(bias >= -1000 && bias <= 1000)) {
      return OutOfRange(absl::StrCat("the logit bias of token ", token), bias,
                        "between -1000 and 1000");
    }
  }
  return absl::OkStatus();
}

absl::Status NotFinite(size_t position) {
  return absl::DataLossError(absl::StrCat("the logits after the token at position ", position,
                                          " are not all finite: the model's weights are damaged"));
}

ChosenToken ChanceOf(absl::Span<const float> logits, int32_t token, size_t top) {
  const FloatEnvironment environment;
  const double all = LogSumExp(logits.data(), logits.size());
  const auto logprob = [&](float logit) { return static_cast<float>(double{logit} - all); };
  const bool known = token >= 0 && static_cast<size_t>(token) < logits.size();
  ChosenToken chosen{.token = token,
                     .logprob = known ? logprob(logits[static_cast<size_t>(token)])
                                      : -std::numeric_limits<float>::infinity(),
                     .top = {}};
  std::vector<IndexedValue> best;
  TopK(logits.data(), logits.size(), top, best);
  for (const IndexedValue& value : best) {
    chosen.top.push_back({.token = value.index, .logprob = logprob(value.value)});
  }
  return chosen;
}

void Sampler::PenalizeRepeated(absl::Span<const int32_t> recent) {
  const std::unordered_set<int32_t> tokens(recent.begin(), recent.end());
  for (int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= adjusted_.size()) continue;
    float& logit = adjusted_[static_cast<size_t>(token)];
    logit = logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
  }
}

void Sampler::PenalizePresent(absl::Span<const int32_t> answer) {
  std::unordered_map<int32_t, int> counts;
  for (int32_t token : answer) ++counts[token];
  for (const auto& [token, count] : counts) {
    if (token < 0 || static_cast<size_t>(token) >= adjusted_.size()) continue;
    adjusted_[static_cast<size_t>(token)] -=
        options_.presence_penalty + options_.frequency_penalty * static_cast<float>(count);
  }
}

namespace {

// Sets the values of tokens that are not allowed to minus infinity.
void Forbid(absl::Span<const uint64_t> allowed, std::vector<float>& values) {
  constexpr size_t kBits = 64;
  for (size_t begin = 0; begin < values.size(); begin += kBits) {
    const uint64_t word = begin / kBits < allowed.size() ? allowed[begin / kBits] : 0;
    const size_t end = std::min(begin + kBits, values.size());
    for (size_t i = begin; i < end; ++i) {
      if ((word >> (i - begin) & 1) == 0) values[i] = -std::numeric_limits<float>::infinity();
    }
  }
}

}  // namespace

absl::Span<const float> Sampler::Adjust(absl::Span<const float> logits,
                                        absl::Span<const int32_t> history, size_t answer,
                                        absl::Span<const uint64_t> allowed) {
  const bool repeated = options_.repeat_penalty != 1.0f && options_.repeat_last_n > 0;
  const bool present = options_.presence_penalty != 0 || options_.frequency_penalty != 0;
  if (!repeated && !present && options_.logit_bias.empty() && allowed.empty()) return logits;
  adjusted_.assign(logits.begin(), logits.end());
  for (const auto& [token, bias] : options_.logit_bias) {
    if (token >= 0 && static_cast<size_t>(token) < adjusted_.size())
      adjusted_[static_cast<size_t>(token)] += bias;
  }
  const auto last = [&](size_t count) { return history.last(std::min(history.size(), count)); };
  if (repeated) PenalizeRepeated(last(static_cast<size_t>(options_.repeat_last_n)));
  if (present) PenalizePresent(last(answer));
  if (!allowed.empty()) Forbid(allowed, adjusted_);
  return adjusted_;
}

absl::StatusOr<int32_t> Sampler::Sample(absl::Span<const float> logits,
                                        absl::Span<const int32_t> history, size_t answer,
                                        absl::Span<const uint64_t> allowed) {
  assert(!logits.empty());
  const FloatEnvironment environment;  // the token drawn is a result, too
  if (!AllFinite(logits.data(), logits.size()))
    return NotFinite(history.size() - std::min<size_t>(history.size(), 1));
  const absl::Span<const float> values = Adjust(logits, history, answer, allowed);
  if (options_.temperature == 0) return static_cast<int32_t>(ArgMax(values.data(), values.size()));

  const size_t k = options_.top_k == 0 ? values.size() : static_cast<size_t>(options_.top_k);
  // Used again for each token, since the system gives and takes megabytes slowly; not a sampler's
  // own, as there is one for each answer.
  thread_local std::vector<IndexedValue> candidates;
  thread_local std::vector<double> weights;
  TopK(values.data(), values.size(), k, candidates);
  while (candidates.back().value == -std::numeric_limits<float>::infinity()) candidates.pop_back();
  SetWeights(candidates, 1, weights);
  weights.resize(Cut(weights, options_.top_p, options_.min_p));
  candidates.resize(weights.size());
  if (options_.temperature != 1) SetWeights(candidates, options_.temperature, weights);

  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double left = RandomUnit(options_.seed, history.size(), options_.choice) * sum;
  for (size_t i = 0; i < weights.size(); ++i) {
    left -= weights[i];
    if (left < 0) return candidates[i].index;
  }
  return candidates.back().index;  // rounding may leave a remainder
}

}  // namespace inlay
