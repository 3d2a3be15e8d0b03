// OpenAI: POST /v1/completions.
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/api/call_fields.h"
#include "serve/api/parsers.h"
#include "serve/api/text_or_tokens.h"

namespace inlay::serve {
namespace {

constexpr size_t kMostPrompts = 128;
// What the protocol says where a request says nothing.
constexpr size_t kDefaultMaxTokens = 16;
constexpr int64_t kMostOldLogprobs = 5;

void ReadCompletionLogprobs(FieldReader& body, Call* call) {
  const auto logprobs = body.Integer("logprobs", 0, kMostOldLogprobs);
  if (!logprobs.has_value()) return;
  call->logprobs = true;
  call->top_logprobs = static_cast<size_t>(*logprobs);
}

}  // namespace

void ParseCompletions(FieldReader& body, Call* call) {
  call->prompts = ReadTextsOrTokens(body, "prompt", kMostPrompts);
  call->parse_special = body.Bool("parse_special").value_or(false);
  call->echo = body.Bool("echo").value_or(false);
  ReadSampling(body, call);
  ReadGrammar(body, call);
  if (!call->max_tokens.has_value()) call->max_tokens = kDefaultMaxTokens;
  ReadMaxTokens(body, "max_tokens", /*least=*/0, call);
  ReadMaxTokens(body, "max_completion_tokens", /*least=*/0, call);
  ReadStopTexts(body, "stop", call);
  ReadChoices(body, call);
  const auto best_of = body.Integer("best_of", 1, kMostChoices);
  if (best_of.has_value() && static_cast<size_t>(*best_of) != call->choices)
    body.Fail("best_of", "must equal n: this server does not choose among answers");
  ReadCompletionLogprobs(body, call);
  ReadStream(body, call);
  call->ignore_eos = body.Bool("ignore_eos").value_or(false);
  AcceptBookkeeping(body);
  body.Refuse("suffix");
  body.Refuse("n_predict", "is not supported: use max_tokens");
}

}  // namespace inlay::serve
