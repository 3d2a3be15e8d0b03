// Answers in the form that a client's protocol has for them.
#ifndef INLAY_SERVE_API_REPLY_H_
#define INLAY_SERVE_API_REPLY_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"

namespace inlay::serve {

// What a reply says about itself.
struct ReplyHeader {
  std::string id;       // a text of letters and digits; the protocol's prefix goes in front
  std::string model;    // as the server names it
  int64_t created = 0;  // seconds since 1970
  std::string system_fingerprint;
  uint64_t seed = 0;
};

struct ReplyUsage {
  size_t prompt_tokens = 0;
  size_t cached_tokens = 0;  // of these, how many were reused
  size_t completion_tokens = 0;
  size_t reasoning_tokens = 0;  // of these, how many the model thought
};

// What has become known of one answer since the last update.
struct ReplyUpdate {
  size_t choice = 0;
  absl::Span<const AnswerEvent> events;
  absl::Span<const ChosenToken> tokens;  // where logprobs are asked for
};

// The end of one answer.
struct ReplyEnd {
  size_t choice = 0;
  StopReason reason = StopReason::kEndOfGeneration;
  std::string stop_text;  // for kStopText: which one
  ReplyUsage usage;       // of this answer
};

// Writes one reply. Of a streamed reply each function returns the bytes to send next, as
// server-sent events; of a whole one all but Finish return "", and Finish returns the body. Every
// choice gets its updates and then its end; Finish comes last, after every choice has ended.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  virtual std::string Begin(size_t prompt_tokens, size_t cached_tokens) = 0;
  virtual std::string Update(const ReplyUpdate& update) = 0;
  virtual std::string End(const ReplyEnd& end) = 0;
  virtual std::string Finish() = 0;
  // A sign of life where nothing else is to be sent.
  virtual std::string Ping() = 0;
  // The end of a streamed reply that failed after its beginning.
  virtual std::string Fail(const absl::Status& status) = 0;
};

// `call`, as far as the reply repeats it, and `tokenizer` must outlive the writer.
std::unique_ptr<ReplyWriter> MakeReplyWriter(const Call& call, const ReplyHeader& header,
                                             const Tokenizer& tokenizer);

// The HTTP status and body of an error in the protocol's shape: 400 for InvalidArgument,
// OutOfRange and FailedPrecondition, 401 Unauthenticated, 403 PermissionDenied, 404 NotFound, 409
// Aborted and AlreadyExists, 429 ResourceExhausted, 501 Unimplemented, 503 Unavailable and what
// IsOutOfMemory, 504 DeadlineExceeded, 499 Cancelled, else 500.
int HttpStatusOf(const absl::Status& status);
std::string ErrorBody(Protocol protocol, const absl::Status& status);

// The error of a conversation or text that is given to the model: where it is OutOfRange it is
// marked, and bodies of errors have the code and the words by which clients know to shorten the
// conversation.
absl::Status MarkTooLong(absl::Status status);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_REPLY_H_
