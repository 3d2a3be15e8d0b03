// Forward passes of the C API: batches, prompts, likelihoods and embeddings.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "base/token_ids.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/c_api/options.h"
#include "gemma_like/c_api/watch.h"
#include "gemma_like/embed.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/generation/prompt_steps.h"
#include "gemma_like/inlay_c.h"
#include "gemma_like/perplexity.h"
#include "ops/cpu/float_environment.h"
#include "ops/row_kernels.h"
#include "ops/softmax.h"

namespace inlay::c_api {
namespace {

// Checks the steps, and takes their conversations into use.
absl::StatusOr<std::vector<Use>> UseAll(absl::Span<inlay_step* const> steps) {
  std::vector<Use> used;
  for (size_t i = 0; i < steps.size(); ++i) {
    const inlay_step& step = *steps[i];
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", step.cache}}));
    INLAY_RETURN_IF_ERROR(CheckArray("tokens", step.tokens, step.count));
    if (step.cache->shared != steps.front()->cache->shared) {
      return absl::InvalidArgumentError("the conversations are of different models");
    }
    absl::StatusOr<Use> use = Use::Of(step.cache->conversation);
    if (!use.ok()) {
      for (size_t j = 0; j < i; ++j) {
        if (steps[j]->cache->conversation != step.cache->conversation) continue;
        return absl::InvalidArgumentError(
            absl::StrCat("steps ", j, " and ", i, " are of the same conversation"));
      }
      return About(absl::StrCat("step ", i), use.status());
    }
    used.push_back(*std::move(use));
  }
  return used;
}

absl::Status Forward(absl::Span<inlay_step* const> steps, float* logits, size_t capacity) {
  if (steps.empty()) return absl::InvalidArgumentError("there are no steps");
  // Held, as the conversations are: the callback that is polled may free the handles.
  std::shared_ptr<SharedModel> model;
  INLAY_ASSIGN_OR_RETURN(const std::vector<Use> used, UseAll(steps));
  model = steps.front()->cache->shared;
  INLAY_RETURN_IF_ERROR(CheckNotAsking(*model));
  Engine& engine = model->engine();
  // Copies: the conversations' own tokens, which may be among them, move as these grow.
  std::vector<std::vector<int32_t>> tokens;
  std::vector<SequenceStep> sequences;
  size_t rows = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const inlay_step& step = *steps[i];
    tokens.emplace_back(step.tokens, step.tokens + step.count);
    sequences.push_back(
        {.cache = &used[i].cache(), .tokens = tokens.back(), .logit_rows = step.logit_rows});
    rows += step.logit_rows;
  }
  const size_t vocab_size = engine.info().vocab_size;
  if (rows > capacity / vocab_size) {
    return absl::InvalidArgumentError(absl::StrCat("logits of ", rows, " x ", vocab_size,
                                                   " do not fit in ", capacity, " floats"));
  }
  if (rows > 0) INLAY_RETURN_IF_ERROR(CheckNotNull({{"logits", logits}}));
  Watch watch(model.get());
  std::vector<absl::Status> outcomes(steps.size());
  INLAY_RETURN_IF_ERROR(engine.Forward(sequences, FloatRows(logits, rows, vocab_size),
                                       watch.Check(), absl::MakeSpan(outcomes)));
  std::string sentences;
  for (size_t i = 0; i < steps.size(); ++i) {
    steps[i]->status = CodeOf(outcomes[i]);
    if (outcomes[i].ok()) continue;
    absl::StrAppend(&sentences, sentences.empty() ? "" : "; ", "step ", i, ": ",
                    outcomes[i].message());
  }
  if (!sentences.empty()) SetLastError(sentences);
  return absl::OkStatus();
}

absl::Status LogProbabilities(size_t vocab_size, const float* logits,
                              absl::Span<const int32_t> tokens, double* result) {
  INLAY_RETURN_IF_ERROR(CheckIds(tokens, vocab_size));
  const ConstFloatRows rows(logits, tokens.size(), vocab_size);
  for (size_t i = 0; i < tokens.size(); ++i) {
    const float* row = rows.Row(i);
    if (!AllFinite(row, vocab_size)) {
      return absl::DataLossError(absl::StrCat("row ", i, " of the logits is not finite"));
    }
    result[i] = row[tokens[i]] - LogSumExp(row, vocab_size);
  }
  return absl::OkStatus();
}

// The cache is a copy of the caller's handle, which the callback that is polled may free.
absl::Status AppendTo(const inlay_cache cache, absl::Span<const int32_t> tokens, float* logits) {
  INLAY_RETURN_IF_ERROR(CheckNotAsking(*cache.shared));
  INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache.conversation));
  INLAY_RETURN_IF_ERROR(CheckPrompt(use.cache(), tokens));
  // A copy: the conversation's own tokens, which these may be, move as it grows.
  const std::vector<int32_t> copy(tokens.begin(), tokens.end());
  Engine& engine = cache.shared->engine();
  Watch watch(cache.shared.get());
  return Prefill(engine, use.cache(), copy,
                 FloatRows(logits, logits == nullptr ? 0 : 1, engine.info().vocab_size),
                 watch.Check());
}

// The model is held: the callback that is polled may free its handle.
absl::StatusOr<LikelihoodSum> Score(const std::shared_ptr<SharedModel> held,
                                    absl::Span<const int32_t> tokens, size_t chunk, int row_type) {
  const SharedModel& model = *held;
  INLAY_RETURN_IF_ERROR(CheckNotAsking(model));
  if (chunk < kSmallestChunk || chunk > tokens.size()) {
    return absl::InvalidArgumentError(absl::StrCat("chunk is ", chunk, ", not between ",
                                                   kSmallestChunk, " and the ", tokens.size(),
                                                   " tokens that there are"));
  }
  INLAY_ASSIGN_OR_RETURN(const KvType type, RowTypeOf(row_type));
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<KVCache> cache,
                         model.engine().CreateCache({.max_length = chunk}, type));
  const Tokenizer& tokenizer = model.tokenizer();
  Watch watch(&model);
  return Perplexity(model.engine(), *cache, tokens,
                    tokenizer.adds_bos() ? tokenizer.bos().value_or(-1) : -1, {.chunk = chunk},
                    nullptr, watch.Check());
}

absl::Status Embed(const std::shared_ptr<SharedModel> held, absl::Span<const inlay_tokens> texts,
                   float* embeddings, size_t capacity) {
  const SharedModel& model = *held;
  INLAY_RETURN_IF_ERROR(CheckNotAsking(model));
  std::vector<std::vector<int32_t>> tokens;
  for (const inlay_tokens& text : texts) {
    INLAY_RETURN_IF_ERROR(CheckArray("the tokens of a text", text.tokens, text.count));
    tokens.emplace_back(text.tokens, text.tokens + text.count);
  }
  const size_t dim = model.engine().info().embedding_dim;
  if (dim > 0 && texts.size() > capacity / dim) {
    return absl::InvalidArgumentError(absl::StrCat("embeddings of ", texts.size(), " x ", dim,
                                                   " do not fit in ", capacity, " floats"));
  }
  Watch watch(&model);
  INLAY_ASSIGN_OR_RETURN(const std::vector<std::vector<float>> vectors,
                         EmbedTexts(model.engine(), tokens, watch.Check()));
  for (const std::vector<float>& vector : vectors) {
    embeddings = std::copy(vector.begin(), vector.end(), embeddings);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace inlay::c_api

using inlay::c_api::Call;
using inlay::c_api::CheckArray;
using inlay::c_api::CheckNotNull;
using inlay::c_api::ElementsOf;

inlay_status inlay_forward(inlay_step* steps, size_t count, float* logits, size_t capacity) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckArray("steps", steps, count));
    INLAY_ASSIGN_OR_RETURN(
        const std::vector<inlay_step*> elements,
        ElementsOf("inlay_step", steps, count, inlay::c_api::kSizeToStatus<inlay_step>));
    return inlay::c_api::Forward(elements, logits, capacity);
  });
}

inlay_status inlay_append(inlay_cache* cache, const int32_t* tokens, size_t count, float* logits) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}}));
    INLAY_RETURN_IF_ERROR(CheckArray("tokens", tokens, count));
    return inlay::c_api::AppendTo(*cache, {tokens, count}, logits);
  });
}

inlay_status inlay_log_probabilities(const inlay_model* model, const float* logits,
                                     const int32_t* tokens, size_t count, double* result) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}}));
    INLAY_RETURN_IF_ERROR(CheckArray("logits", logits, count));
    INLAY_RETURN_IF_ERROR(CheckArray("tokens", tokens, count));
    INLAY_RETURN_IF_ERROR(CheckArray("result", result, count));
    const inlay::FloatEnvironment environment;
    return inlay::c_api::LogProbabilities(inlay_vocabulary_size(model), logits, {tokens, count},
                                          result);
  });
}

inlay_status inlay_perplexity(const inlay_model* model, const int32_t* tokens, size_t count,
                              size_t chunk, int row_type, inlay_likelihood* likelihood) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"inlay_likelihood", likelihood}}));
    INLAY_RETURN_IF_ERROR(inlay::c_api::CheckSize("inlay_likelihood", likelihood->size));
    INLAY_RETURN_IF_ERROR(CheckArray("tokens", tokens, count));
    const inlay::FloatEnvironment environment;
    INLAY_ASSIGN_OR_RETURN(const inlay::LikelihoodSum sum,
                           inlay::c_api::Score(model->shared, {tokens, count}, chunk, row_type));
    return inlay::c_api::Fill("inlay_likelihood",
                              inlay_likelihood{.size = sizeof(inlay_likelihood),
                                               .scored = sum.count(),
                                               .mean_nll = sum.mean(),
                                               .mean_nll_error = sum.mean_error(),
                                               .perplexity = sum.perplexity(),
                                               .perplexity_error = sum.perplexity_error()},
                              likelihood);
  });
}

inlay_status inlay_embed(const inlay_model* model, const inlay_tokens* texts, size_t count,
                         float* embeddings, size_t capacity) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}}));
    INLAY_RETURN_IF_ERROR(CheckArray("texts", texts, count));
    INLAY_RETURN_IF_ERROR(CheckArray("embeddings", embeddings, capacity));
    return inlay::c_api::Embed(model->shared, {texts, count}, embeddings, capacity);
  });
}
