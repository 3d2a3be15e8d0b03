// The control tokens by which a model marks the parts of its answer.
#ifndef INLAY_GEMMA_LIKE_CHAT_MARKER_TOKENS_H_
#define INLAY_GEMMA_LIKE_CHAT_MARKER_TOKENS_H_

#include <cstdint>
#include <vector>

#include "gemma_like/chat/answer_format.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// Those control tokens whose texts are part of the format's markers, ascending: with them as
// GenerateOptions::shown_control, an AnswerParser finds the markers in a generated text. Other
// control tokens stay without a text.
std::vector<int32_t> MarkerTokens(const Tokenizer& tokenizer, const AnswerFormat& format);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_CHAT_MARKER_TOKENS_H_
