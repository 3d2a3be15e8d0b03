// Answers, and the replies that become of them.
#ifndef INLAY_TESTS_SERVE_API_REPLY_SCRIPT_H_
#define INLAY_TESTS_SERVE_API_REPLY_SCRIPT_H_

#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "gemma_like/chat/answer_event.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/generation/sampler.h"
#include "io/json/parse_json.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/api/reply.h"

namespace inlay::serve {

// One answer of a reply. An update brings one event, and with it one token if there are any left;
// the first one brings also those of the prompt, which come first.
struct ScriptedAnswer {
  std::vector<AnswerEvent> events = {};
  std::vector<ChosenToken> tokens = {};
  size_t prompt_tokens = 0;  // so many of them
  StopReason reason = StopReason::kEndOfGeneration;
  std::string stop_text = {};
  ReplyUsage usage = {
      .prompt_tokens = 7, .cached_tokens = 4, .completion_tokens = 5, .reasoning_tokens = 2};
};

// Token 3 + b is the byte b; 1 and 2 are control tokens.
const Tokenizer& ByteTokenizer();

// The reply to `call` with id "ID", model "M", created 9, fingerprint "FP", seed 8. Answers come
// one update of each in turn.
std::string WriteReply(const Call& call, const std::vector<ScriptedAnswer>& answers);

// The data of a stream's events. An event's name must be its data's type, and "[DONE]" is a string.
std::vector<Json> StreamEvents(absl::string_view stream);

// One event a line, each without the members named.
std::string EventLines(absl::string_view stream, const std::vector<std::string>& without);

// What a model could answer: thoughts, texts and calls in any order, some empty, perhaps cut off
// anywhere but within a call.
ScriptedAnswer RandomAnswer(std::mt19937& random);

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_API_REPLY_SCRIPT_H_
