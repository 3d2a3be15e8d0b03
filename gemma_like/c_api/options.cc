#include "gemma_like/c_api/options.h"

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/chat_handle.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/answer_shape.h"

namespace inlay::c_api {
namespace {

absl::StatusOr<AnswerShape::Kind> ShapeKindOf(int kind) {
  switch (kind) {
    case INLAY_SHAPE_JSON_SCHEMA:
      return AnswerShape::Kind::kJsonSchema;
    case INLAY_SHAPE_REGEX:
      return AnswerShape::Kind::kRegex;
    case INLAY_SHAPE_GBNF:
      return AnswerShape::Kind::kGbnf;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("shape_kind is ", kind, ", not an inlay_shape_kind"));
}

// Null for an answer of any shape.
absl::StatusOr<std::shared_ptr<const AnswerGrammar>> GrammarOf(const inlay_options& o,
                                                               AnswerGrammars& grammars) {
  if (o.shape_kind == INLAY_SHAPE_NONE) return nullptr;
  AnswerShape shape;
  INLAY_ASSIGN_OR_RETURN(shape.kind, ShapeKindOf(o.shape_kind));
  INLAY_RETURN_IF_ERROR(CheckNotNull({{"shape", o.shape}}));
  shape.source = o.shape;
  if (o.shape_after != nullptr) shape.after = o.shape_after;
  // Within the thoughts that the prompt has opened, no reader would look for the shape.
  if (shape.after.empty() && o.chat != nullptr && o.chat->rendered.in_thinking)
    shape.after = std::string(o.chat->rendered.answer_format.think_end);
  shape.in_order = o.shape_in_order != 0;
  return grammars.Get(shape);
}

}  // namespace

inlay_options DefaultOptions(const LoadedModel& model) {
  const SamplingOptions s = SamplingOptions::From(model.engine->info().sampling);
  return {.size = sizeof(inlay_options),
          .max_tokens = 256,
          .temperature = s.temperature,
          .top_k = s.top_k,
          .top_p = s.top_p,
          .min_p = s.min_p,
          .repeat_penalty = s.repeat_penalty,
          .repeat_last_n = s.repeat_last_n,
          .seed = 0,
          .stop_texts = nullptr,
          .stop_text_count = 0,
          .ignore_end = 0,
          .draft = 0,
          .shape_kind = INLAY_SHAPE_NONE,
          .shape = nullptr,
          .shape_after = nullptr,
          .shape_in_order = 0,
          .presence_penalty = s.presence_penalty,
          .frequency_penalty = s.frequency_penalty,
          .chat = nullptr,
          .logit_bias = nullptr,
          .logit_bias_count = 0,
          .log_probabilities = 0};
}

absl::StatusOr<inlay_options> WithDefaults(const inlay_options* options, const LoadedModel& model) {
  return Complete("inlay_options", options, DefaultOptions(model));
}

absl::StatusOr<SamplingOptions> SamplingOf(const inlay_options& o, const LoadedModel& model) {
  SamplingOptions sampling{.temperature = o.temperature,
                           .top_k = o.top_k,
                           .top_p = o.top_p,
                           .min_p = o.min_p,
                           .repeat_penalty = o.repeat_penalty,
                           .repeat_last_n = o.repeat_last_n,
                           .presence_penalty = o.presence_penalty,
                           .frequency_penalty = o.frequency_penalty,
                           .seed = o.seed};
  INLAY_RETURN_IF_ERROR(CheckArray("logit_bias", o.logit_bias, o.logit_bias_count));
  for (const inlay_bias& bias : absl::MakeConstSpan(o.logit_bias, o.logit_bias_count)) {
    if (bias.token < 0 || static_cast<size_t>(bias.token) >= model.engine->info().vocab_size) {
      return absl::InvalidArgumentError(absl::StrCat("logit_bias has the token ", bias.token,
                                                     ", outside 0 to ",
                                                     model.engine->info().vocab_size - 1));
    }
    sampling.logit_bias.emplace_back(bias.token, bias.bias);
  }
  return sampling;
}

absl::StatusOr<GenerateOptions> GenerateOptionsOf(const inlay_options& o, SharedModel& model) {
  GenerateOptions options;
  options.max_tokens = o.max_tokens;
  INLAY_ASSIGN_OR_RETURN(options.sampling, SamplingOf(o, model.loaded()));
  INLAY_RETURN_IF_ERROR(CheckArray("stop_texts", o.stop_texts, o.stop_text_count));
  for (size_t i = 0; i < o.stop_text_count; ++i) {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"a stop text", o.stop_texts[i]}}));
    options.stop_texts.emplace_back(o.stop_texts[i]);
  }
  options.ignore_eos = o.ignore_end != 0;
  options.draft = o.draft;
  if (o.log_probabilities != 0) options.top_chances = 0;
  if (o.chat != nullptr) {
    options.shown_control = MarkerTokens(model.tokenizer(), o.chat->rendered.answer_format);
  }
  INLAY_ASSIGN_OR_RETURN(options.grammar, GrammarOf(o, model.grammars()));
  return options;
}

absl::StatusOr<KvType> RowTypeOf(int type) {
  switch (type) {
    case INLAY_ROWS_F32:
      return KvType::kF32;
    case INLAY_ROWS_F16:
      return KvType::kF16;
    case INLAY_ROWS_BF16:
      return KvType::kBF16;
    case INLAY_ROWS_Q8:
      return KvType::kQ8;
  }
  return absl::InvalidArgumentError(absl::StrCat("row_type is ", type, ", not an inlay_row_type"));
}

}  // namespace inlay::c_api
