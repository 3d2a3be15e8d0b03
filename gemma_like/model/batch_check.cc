#include "gemma_like/model/batch_check.h"

#include <cassert>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace inlay {
namespace {

absl::Status CheckTokens(absl::Span<const int32_t> tokens, const EngineInfo& info) {
  for (int32_t token : tokens) {
    if (token < 0 || static_cast<size_t>(token) >= info.vocab_size) {
      return absl::InvalidArgumentError(
          absl::StrCat("token ", token, " is not in the vocabulary of ", info.vocab_size));
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRows(size_t rows, const EngineInfo& info) {
  if (rows > 0 && rows <= info.max_batch) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a batch of ", rows, " tokens is not between 1 and ", info.max_batch));
}

absl::Status CheckStep(const SequenceStep& step, const EngineInfo& info) {
  assert(step.cache != nullptr);
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
  return CheckTokens(step.tokens, info);
}

}  // namespace

absl::Status CheckBatch(absl::Span<const SequenceStep> steps, const FloatRows& logits,
                        const EngineInfo& info) {
  size_t rows = 0;
  size_t logit_rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (absl::Status status = CheckStep(steps[i], info); !status.ok()) return status;
    for (size_t j = 0; j < i; ++j) {
      if (steps[j].cache == steps[i].cache) {
        return absl::InvalidArgumentError(
            absl::StrCat("steps ", j, " and ", i, " of the batch have the same cache"));
      }
    }
    rows += steps[i].tokens.size();
    logit_rows += steps[i].logit_rows;
  }
  if (absl::Status status = CheckRows(rows, info); !status.ok()) return status;
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
    if (absl::Status status = CheckTokens(texts[i], info); !status.ok()) return status;
    rows += texts[i].size();
  }
  if (texts.size() > kMostTexts) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch of ", texts.size(), " texts has more than ", kMostTexts));
  }
  if (absl::Status status = CheckRows(rows, info); !status.ok()) return status;
  if (embeddings.rows != texts.size() || embeddings.cols != info.embedding_dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("embeddings of ", texts.size(), " x ", info.embedding_dim,
                     " were asked for, but the view is ", embeddings.rows, " x ", embeddings.cols));
  }
  return absl::OkStatus();
}

}  // namespace inlay
