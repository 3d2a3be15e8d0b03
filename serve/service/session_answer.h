// Reads answers of sessions: text as a model writes it becomes events and a message.
#ifndef INLAY_SERVE_SERVICE_SESSION_ANSWER_H_
#define INLAY_SERVE_SERVICE_SESSION_ANSWER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/chat/answer_parser.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/reply_parts.h"
#include "serve/sessions/session.h"

namespace inlay::serve {

// The text of generated tokens, as Generation writes it: with the control tokens of `shown`
// (ascending), without others. More tokens may follow where `begun` is given: then it gets the
// bytes of a character that these only begin, which are not in the text.
std::string GeneratedText(const Tokenizer& tokenizer, absl::Span<const int32_t> tokens,
                          absl::Span<const int32_t> shown, std::string* begun = nullptr);

class SessionAnswerReader {
 public:
  // A raw answer, which is text and no message.
  SessionAnswerReader() = default;
  // One that is read by the format. The ids of its calls begin with "call_" and `id`. With
  // `one_call` what follows the end of its first call is not read.
  SessionAnswerReader(const AnswerFormat& format, const AnswerParserOptions& options,
                      std::string id, bool one_call = false)
      : parser_(std::in_place, format, options), id_(std::move(id)), one_call_(one_call) {}

  // What became certain with this piece of the answer, and with its end (AnswerParser::Finish).
  std::vector<AnswerEvent> Push(absl::string_view text);
  std::vector<AnswerEvent> Finish(bool ended = true);

  // The answer so far; after Finish, all of it.
  SessionAnswer Take();
  bool called() const { return !calls_.empty() && calls_.back().complete; }
  // Whether the one call that the answer may have is complete.
  bool has_enough() const { return has_enough_; }

 private:
  std::vector<AnswerEvent> Collect(std::vector<AnswerEvent> events);

  std::optional<AnswerParser> parser_;
  std::string id_;
  bool one_call_ = false;
  bool has_enough_ = false;
  std::string said_, text_, reasoning_;
  std::vector<CallText> calls_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_ANSWER_H_
