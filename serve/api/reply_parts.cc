#include "serve/api/reply_parts.h"

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"

namespace inlay::serve {

std::unique_ptr<ReplyWriter> MakeReplyWriter(const Call& call, const ReplyHeader& header,
                                             const Tokenizer& tokenizer) {
  switch (call.protocol) {
    case Protocol::kChatCompletions:
      return MakeChatCompletionsWriter(call, header, tokenizer);
    case Protocol::kCompletions:
      return MakeCompletionsWriter(call, header, tokenizer);
    case Protocol::kResponses:
      return MakeResponsesWriter(call, header);
    case Protocol::kMessages:
      return MakeMessagesWriter(call, header);
    case Protocol::kInlay:
      break;
  }
  assert(false);
  return nullptr;
}

std::string CallId(absl::string_view prefix, const ReplyHeader& header, size_t choice,
                   size_t call) {
  if (choice == 0) return absl::StrCat(prefix, header.id, "_", call);
  return absl::StrCat(prefix, header.id, "_", choice, "_", call);
}

bool IsCut(StopReason reason) {
  return reason == StopReason::kMaxTokens || reason == StopReason::kContextFull ||
         reason == StopReason::kCancelled;
}

Json BytesJson(absl::string_view bytes) {
  Json list = Json::array();
  for (const char byte : bytes) list.push_back(static_cast<uint8_t>(byte));
  return list;
}

double Logprob(float logprob) { return std::max<double>(logprob, -9999.0); }

void UsageSum::Add(const ReplyEnd& end) {
  if (end.choice % choices_ == 0) {
    sum_.prompt_tokens += end.usage.prompt_tokens;
    sum_.cached_tokens += end.usage.cached_tokens;
  }
  sum_.completion_tokens += end.usage.completion_tokens;
  sum_.reasoning_tokens += end.usage.reasoning_tokens;
}

Json UsageJson(const ReplyUsage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

}  // namespace inlay::serve
