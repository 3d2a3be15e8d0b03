// The shape that a request asks an answer to have.
#ifndef INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_
#define INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_

#include <optional>

#include "absl/status/statusor.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/grammar/answer_shape.h"
#include "serve/api/call.h"

namespace inlay::serve {

// None for an answer that may be anything. It puts together the call's own shape, its tools and
// their choice; `format` is how the model writes calls, and where its thoughts end if the prompt
// leaves it amid them. InvalidArgument for what cannot be kept in that format, but for strict tools
// that need not be called: they are then like others.
absl::StatusOr<std::optional<AnswerShape>> ShapeOf(const Call& call, const AnswerFormat& format,
                                                   bool in_thinking);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_
