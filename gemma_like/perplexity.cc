#include "gemma_like/perplexity.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "base/token_ids.h"
#include "gemma_like/generation/sampler.h"
#include "ops/row_kernels.h"
#include "ops/softmax.h"

namespace inlay {
namespace {

// Rows of logits at a time: with a vocabulary of 262,144 tokens they need 64 MB.
constexpr size_t kLogitRows = 64;

// Evaluates one chunk after another in one cache.
class ChunkScorer {
 public:
  ChunkScorer(Engine& engine, KVCache& cache, size_t chunk, const CancelCheck& cancel)
      : engine_(engine),
        cache_(cache),
        cancel_(cancel),
        unscored_(chunk / 2),
        nll_(chunk - 1 - unscored_),
        logits_(std::min(kLogitRows, nll_.size()) * engine.info().vocab_size) {}

  absl::Span<const double> nll() const { return nll_; }

  // Evaluates the tokens from the conversation's end on, all but the last, and records the
  // likelihoods of those that are scored.
  absl::Status Score(absl::Span<const int32_t> chunk) {
    const size_t end = chunk.size() - 1;
    const size_t vocab = engine_.info().vocab_size;
    while (cache_.length() < end) {
      const size_t at = cache_.length();
      const bool scored = at >= unscored_;
      const size_t most = std::min(engine_.info().max_batch, cache_.max_append());
      const size_t n = std::min(most, scored ? std::min(kLogitRows, end - at) : unscored_ - at);
      const FloatRows logits(logits_.data(), scored ? n : 0, vocab);
      const SequenceStep step{
          .cache = &cache_, .tokens = chunk.subspan(at, n), .logit_rows = logits.rows};
      INLAY_RETURN_IF_ERROR(engine_.Forward({&step, 1}, logits, cancel_));
      for (size_t i = 0; i < logits.rows; ++i) {
        const float* row = logits.Row(i);
        if (!AllFinite(row, vocab)) return NotFinite(at + i);
        nll_[at - unscored_ + i] = LogSumExp(row, vocab) - row[chunk[at + i + 1]];
      }
    }
    return absl::OkStatus();
  }

  // Returns to the start of the chunk.
  absl::Status GoToStart() { return cache_.Rewind(0); }

  absl::Status GoBackByRewind() { return cache_.Rewind(cache_.RewindFloor()); }

 private:
  Engine& engine_;
  KVCache& cache_;
  const CancelCheck& cancel_;
  size_t unscored_;
  std::vector<double> nll_;
  std::vector<float> logits_;
};

}  // namespace

void LikelihoodSum::Add(double nll) {
  ++count_;
  sum_ += nll;
  sum_of_squares_ += nll * nll;
}

double LikelihoodSum::mean_error() const {
  if (count_ < 2) return 0;
  const double variance = sum_of_squares_ / static_cast<double>(count_) - mean() * mean();
  return std::sqrt(std::max(0.0, variance) / static_cast<double>(count_ - 1));
}

double LikelihoodSum::perplexity() const { return std::exp(mean()); }

absl::StatusOr<LikelihoodSum> Perplexity(
    Engine& engine, KVCache& cache, absl::Span<const int32_t> tokens, int32_t first,
    const PerplexityOptions& options, const std::function<void(const LikelihoodSum& sum)>& on_chunk,
    const CancelCheck& cancel) {
  if (options.chunk < kSmallestChunk) {
    return absl::InvalidArgumentError(absl::StrCat("a chunk has ", Plural(options.chunk, "token"),
                                                   ", not at least ", kSmallestChunk));
  }
  if (tokens.size() < options.chunk) {
    return absl::InvalidArgumentError(absl::StrCat("the text has ", Plural(tokens.size(), "token"),
                                                   ", but a chunk has ", options.chunk));
  }
  // Forward sees all of them but the last of each chunk, which is only looked up in the logits.
  INLAY_RETURN_IF_ERROR(CheckIds(tokens, engine.info().vocab_size));
  ChunkScorer scorer(engine, cache, options.chunk, cancel);
  LikelihoodSum sum;
  for (; tokens.size() >= options.chunk; tokens.remove_prefix(options.chunk)) {
    const auto begin = tokens.begin();
    std::vector<int32_t> chunk(begin, begin + static_cast<ptrdiff_t>(options.chunk));
    if (first >= 0) chunk.front() = first;
    INLAY_RETURN_IF_ERROR(scorer.GoToStart());
    INLAY_RETURN_IF_ERROR(scorer.Score(chunk));
    if (options.rewind) {
      INLAY_RETURN_IF_ERROR(scorer.GoToStart());
      INLAY_RETURN_IF_ERROR(scorer.Score(chunk));
      INLAY_RETURN_IF_ERROR(scorer.GoBackByRewind());
      INLAY_RETURN_IF_ERROR(scorer.Score(chunk));
    }
    for (double nll : scorer.nll()) sum.Add(nll);
    if (on_chunk) on_chunk(sum);
  }
  return sum;
}

}  // namespace inlay
