// How families write calls, for answers that must be calls.
#ifndef INLAY_GEMMA_LIKE_CHAT_CALL_SHAPE_H_
#define INLAY_GEMMA_LIKE_CHAT_CALL_SHAPE_H_

#include <optional>

#include "gemma_like/chat/answer_format.h"
#include "gemma_like/grammar/call_rules.h"

namespace inlay {

// The syntax and the markers of a format, without tools; none for a syntax to which answers cannot
// be kept yet. What is written by such rules an AnswerParser reads as calls.
std::optional<CallRules> CallRulesOf(const AnswerFormat& format);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_CALL_SHAPE_H_
