// The options of an answer as JSON, for what is written down and read again.
#ifndef INLAY_SERVE_API_OPTIONS_JSON_H_
#define INLAY_SERVE_API_OPTIONS_JSON_H_

#include "absl/strings/string_view.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/grammar/answer_shape.h"
#include "io/json/parse_json.h"
#include "serve/api/document_reader.h"

namespace inlay::serve {

// What an answer depends on besides its prompt: {"sampling", "max_tokens" (null: no limit), "stop",
// "ignore_eos", "shown_control"}.
Json OptionsJson(const GenerateOptions& options);
// {"kind", "source", "in_order", "after"}.
Json ShapeJson(const AnswerShape& shape);

// The options that were written so, as members of `json`, without a grammar; the shape; and the
// reason whose name is the member `key`. What was not written so is an error of the reader.
GenerateOptions OptionsOf(const DocumentReader& json);
AnswerShape ShapeOf(const DocumentReader& json);
StopReason StopReasonOf(const DocumentReader& json, absl::string_view key);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_OPTIONS_JSON_H_
