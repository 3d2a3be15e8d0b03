// What the writers of several protocols' replies share.
#ifndef INLAY_SERVE_API_REPLY_PARTS_H_
#define INLAY_SERVE_API_REPLY_PARTS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "io/json/parse_json.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/api/reply.h"

namespace inlay::serve {

std::unique_ptr<ReplyWriter> MakeChatCompletionsWriter(const Call& call, const ReplyHeader& header,
                                                       const Tokenizer& tokenizer);
std::unique_ptr<ReplyWriter> MakeCompletionsWriter(const Call& call, const ReplyHeader& header,
                                                   const Tokenizer& tokenizer);
std::unique_ptr<ReplyWriter> MakeMessagesWriter(const Call& call, const ReplyHeader& header);
std::unique_ptr<ReplyWriter> MakeResponsesWriter(const Call& call, const ReplyHeader& header);

// {"error": {"message", "type", "param", "code"}}
Json OpenAiError(const absl::Status& status);
// {"type": "error", "error": {"type", "message"}}
Json AnthropicError(const absl::Status& status);
// Whether MarkTooLong has marked it.
bool IsTooLong(const absl::Status& status);
// Gives an error the code that Anthropic's body of it has in details.error_code.
void SetErrorCode(absl::string_view code, absl::Status* status);

// A call of a tool as far as it is known.
struct CallText {
  std::string id, name, arguments;
  bool complete = false;
};

// The id of call `call` of answer `choice`: `prefix`, and what distinguishes it from all others.
std::string CallId(absl::string_view prefix, const ReplyHeader& header, size_t choice, size_t call);

// Whether the answer was cut off before the model ended it.
bool IsCut(StopReason reason);

// Bytes as a list of numbers.
Json BytesJson(absl::string_view bytes);
// A logarithm as JSON has it: -9999 for everything below, as JSON has no infinity.
double Logprob(float logprob);

// As completions, chat/completions and the turns of sessions have it.
Json UsageJson(const ReplyUsage& usage);

// The sum over all answers of a reply. A prompt counts once, with the first of its answers.
class UsageSum {
 public:
  explicit UsageSum(const Call& call) : choices_(call.choices) {}
  void Add(const ReplyEnd& end);
  const ReplyUsage& sum() const { return sum_; }
  Json ToJson() const { return UsageJson(sum_); }

 private:
  const size_t choices_;
  ReplyUsage sum_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_API_REPLY_PARTS_H_
