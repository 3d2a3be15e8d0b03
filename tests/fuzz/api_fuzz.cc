// Any bytes as a request of any protocol: refused with a sentence in UTF-8, or a call whose texts
// are UTF-8 and whose numbers are within their bounds, and which a reply can be written for.
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "io/json/parse_json.h"
#include "serve/api/embeddings.h"
#include "serve/api/parse_call.h"
#include "serve/api/reply.h"
#include "serve/api/token_requests.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/refusal.h"
#include "tests/io/tokenizer/test_vocabulary.h"

namespace inlay::serve {
namespace {

void CheckApiRefusal(const absl::Status& status) {
  inlay::CheckRefusal(status);
  for (const Protocol protocol : {Protocol::kChatCompletions, Protocol::kMessages})
    INLAY_FUZZ_CHECK(Json::accept(ErrorBody(protocol, status)));
}

void CheckMessages(const Call& call) {
  for (const Json& message : *call.messages) {
    INLAY_FUZZ_CHECK(message["role"].is_string() && message["content"].is_string());
    if (!message.contains("tool_calls")) continue;
    for (const Json& made : message["tool_calls"])
      INLAY_FUZZ_CHECK(made["function"]["arguments"].is_object());
  }
  INLAY_FUZZ_CHECK(call.tools->is_null() || (call.tools->is_array() && !call.tools->empty()));
  INLAY_FUZZ_CHECK(call.parse_calls == call.tools->is_array());
  INLAY_FUZZ_CHECK(call.template_variables->is_object());
}

void CheckCall(const Call& call) {
  CheckMessages(call);
  INLAY_FUZZ_CHECK(call.choices >= 1 && call.choices <= 16 && call.top_logprobs <= 20);
  INLAY_FUZZ_CHECK(call.stop_texts.size() <= 16 && call.prompts.size() <= 128);
  for (const std::string& stop : call.stop_texts)
    INLAY_FUZZ_CHECK(!stop.empty() && IsValidUtf8(stop));
  for (const auto& [token, bias] : call.sampling.logit_bias)
    INLAY_FUZZ_CHECK(token >= 0 && bias >= -100 && bias <= 100);
  INLAY_FUZZ_CHECK(call.sampling.top_p.value_or(1) > 0 && call.sampling.top_p.value_or(1) <= 1);
}

// An answer of each kind of event, whatever the request.
void CheckReply(const Call& call) {
  static const auto* const tokenizer = SpmBase().Load()->release();
  const std::vector<AnswerEvent> events = {{AnswerEvent::Kind::kReasoning, "r", 0},
                                           {AnswerEvent::Kind::kText, "\xc3\xa9", 0},
                                           {AnswerEvent::Kind::kCallBegin, "f", 0},
                                           {AnswerEvent::Kind::kCallArguments, "{}", 0},
                                           {AnswerEvent::Kind::kCallEnd, "", 0}};
  const std::unique_ptr<ReplyWriter> writer = MakeReplyWriter(call, {}, *tokenizer);
  std::string reply = writer->Begin(1, 0);
  const size_t prompts = call.protocol == Protocol::kCompletions ? call.prompts.size() : 1;
  for (size_t choice = 0; choice < prompts * call.choices; ++choice) {
    reply += writer->Update({choice, events, {}});
    reply += writer->End({choice, StopReason::kEndOfGeneration, "", {}});
  }
  reply += writer->Finish();
  INLAY_FUZZ_CHECK(IsValidUtf8(reply));
  INLAY_FUZZ_CHECK(call.stream || Json::accept(reply));
}

template <class T>
void CheckSmall(const absl::StatusOr<T>& request) {
  if (!request.ok()) CheckApiRefusal(request.status());
}

}  // namespace
}  // namespace inlay::serve

// The first byte says what kind of request the others are.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay::serve;
  constexpr Protocol kProtocols[] = {Protocol::kChatCompletions, Protocol::kCompletions,
                                     Protocol::kResponses, Protocol::kMessages};
  if (size == 0) return 0;
  const size_t kind = data[0] % 8;
  const absl::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (kind == 5) CheckSmall(ParseTokenize(body));
  if (kind == 6) CheckSmall(ParseDetokenize(body));
  if (kind == 7) CheckSmall(ParseEmbeddings(body));
  if (kind > 4) return 0;
  const auto call = kind == 4 ? ParseCountTokens(body) : ParseCall(kProtocols[kind], body);
  if (!call.ok()) {
    CheckApiRefusal(call.status());
    return 0;
  }
  CheckCall(*call);
  CheckReply(*call);
  return 0;
}
