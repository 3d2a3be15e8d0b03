#include "gemma_like/model/batch_check.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/token_ids.h"

namespace inlay {
namespace {

absl::Status CheckRows(size_t rows, const EngineInfo& info) {
  if (rows > 0 && rows <= info.max_batch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a batch of ", rows, " tokens is not between 1 and ", info.max_batch));
}

absl::Status CheckStep(const SequenceStep& step, const EngineInfo& info) {
  if (step.cache->config_fingerprint() != info.config_fingerprint) {
    return absl::InvalidArgumentError(
        absl::StrCat("a cache of config ", step.cache->config_name(),
                     " cannot be used with a model of config ", info.config_name,
                     step.cache->config_name() == info.config_name ? " whose layers differ" : ""));
  }
  if (step.logit_rows > step.tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat("logits of ", step.logit_rows,
                                                   " tokens were asked for, but the step has ",
                                                   step.tokens.size()));
  }
  return CheckIds(step.tokens, info.vocab_size);
}

}  // namespace

absl::Status CheckMaxBatch(size_t max_batch) {
  if (max_batch > 0 && max_batch <= kMostBatch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("max_batch is ", max_batch, ", not between 1 and ", kMostBatch));
}

absl::Status CheckBatch(absl::Span<const SequenceStep> steps, const FloatRows& logits,
                        absl::Span<const absl::Status> outcomes, const EngineInfo& info) {
  if (!outcomes.empty() && outcomes.size() != steps.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the batch has ", steps.size(), " steps but ", outcomes.size(),
                     " outcomes: there must be one for each step, or none"));
  }
  size_t rows = 0;
  size_t logit_rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].cache == nullptr)
      return absl::InvalidArgumentError(absl::StrCat("step ", i, " of the batch has no cache"));
    INLAY_RETURN_IF_ERROR(CheckStep(steps[i], info));
    for (size_t j = 0; j < i; ++j) {
      if (steps[j].cache == steps[i].cache) {
        return absl::InvalidArgumentError(
            absl::StrCat("steps ", j, " and ", i, " of the batch have the same cache"));
      }
    }
    rows += steps[i].tokens.size();
    logit_rows += steps[i].logit_rows;
  }
  INLAY_RETURN_IF_ERROR(CheckRows(rows, info));
  if (logits.rows != logit_rows || (logit_rows > 0 && logits.cols != info.vocab_size)) {
    return absl::InvalidArgumentError(absl::StrCat("logits of ", logit_rows, " x ", info.vocab_size,
                                                   " were asked for, but the view is ", logits.rows,
                                                   " x ", logits.cols));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(absl::Span<const absl::Span<const int32_t>> texts,
                        const FloatRows& embeddings, const EngineInfo& info) {
  size_t rows = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (texts[i].empty() || texts[i].size() > info.context_length) {
      return absl::InvalidArgumentError(absl::StrCat("text ", i, " has ", texts[i].size(),
                                                     " tokens, not between 1 and ",
                                                     info.context_length));
    }
    INLAY_RETURN_IF_ERROR(CheckIds(texts[i], info.vocab_size));
    rows += texts[i].size();
  }
  if (texts.size() > kMostTexts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", texts.size(), " texts has more than ", kMostTexts));
  }
  INLAY_RETURN_IF_ERROR(CheckRows(rows, info));
  if (embeddings.rows != texts.size() || embeddings.cols != info.embedding_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("embeddings of ", texts.size(), " x ", info.embedding_dim,
                     " were asked for, but the view is ", embeddings.rows, " x ", embeddings.cols));
  }
  return absl::OkStatus();
}

}  // namespace inlay
