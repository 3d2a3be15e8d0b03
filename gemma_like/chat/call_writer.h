// Writes calls of tools as a model writes them, for templates that leave the writing to others.
#ifndef INLAY_GEMMA_LIKE_CHAT_CALL_WRITER_H_
#define INLAY_GEMMA_LIKE_CHAT_CALL_WRITER_H_

#include "absl/status/statusor.h"
#include "gemma_like/chat/answer_format.h"
#include "io/template/text.h"
#include "io/template/value.h"

namespace inlay {

// Whether WriteCalls can write this syntax.
bool CanWriteCalls(CallSyntax syntax);

// The calls of a message, {"tool_calls": [...]} after PrepareMessages, with their markers. What is
// the format's is as trusted as a template; names and arguments are a message's. InvalidArgument
// for a call without a name.
absl::StatusOr<jinja::Text> WriteCalls(const AnswerFormat& format, const jinja::Value& calls);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CALL_WRITER_H_
