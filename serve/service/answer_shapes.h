// The shape that a request asks an answer to have.
#ifndef INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_
#define INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_

#include <optional>
#include <set>
#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/grammar/answer_shape.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"

namespace inlay::serve {

// None for an answer that may be anything. It puts together the call's own shape, its tools and
// their choice; `format` is how the model writes calls, and where its thoughts end if the prompt
// leaves it amid them. InvalidArgument for what cannot be kept in that format, but for strict tools
// that need not be called: they are then like others. Arguments of the tools in `free` are any
// object, unless a tool is strict.
absl::StatusOr<std::optional<AnswerShape>> ShapeOf(const Call& call, const AnswerFormat& format,
                                                   bool in_thinking,
                                                   const std::set<std::string>& free = {});

// The tools to whose parameters ShapeOf would keep the answer, but no grammar can. An error as of
// CompileCalls, with the tool's name, if one of them is strict.
absl::StatusOr<std::set<std::string>> ToolsNotKept(const Call& call, const Tokenizer& tokenizer);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_SHAPES_H_
