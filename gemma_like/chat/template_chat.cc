#include "gemma_like/chat/template_chat.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/template/value.h"

namespace inlay {
namespace {

using jinja::Origin;
using jinja::Value;

Value ChatMessage(absl::string_view role, absl::string_view content) {
  const auto message = std::make_shared<jinja::DictRep>();
  message->Set(Value::String("role", Origin::kTemplate), Value::String(role, Origin::kTemplate));
  message->Set(Value::String("content", Origin::kTemplate),
               Value::String(content, Origin::kMessage));
  message->Finish(nullptr);
  return Value::Dict(message);
}

}  // namespace

absl::StatusOr<jinja::Text> TemplateChatFormat::Render(absl::string_view system,
                                                       absl::Span<const Exchange> before,
                                                       absl::string_view user) const {
  jinja::Values messages;
  if (!system.empty()) messages.push_back(ChatMessage("system", system));
  for (const Exchange& exchange : before) {
    messages.push_back(ChatMessage("user", exchange.user));
    if (!exchange.answer.has_value()) {
      return absl::FailedPreconditionError(
          "the chat was saved by a version of this program that kept no answers, which the model's "
          "chat template needs; a built-in format can go on with it (--chat-template)");
    }
    messages.push_back(ChatMessage("assistant", *exchange.answer));
  }
  messages.push_back(ChatMessage("user", user));
  ChatInput input;
  input.messages = Value::List(std::move(messages));
  input.options = options_;
  return renderer_.RenderText(input);
}

absl::StatusOr<Continuation> TemplateChatFormat::Next(const ChatTexts& texts,
                                                      absl::Span<const int32_t> conversation,
                                                      bool ends_with_answer) const {
  INLAY_ASSIGN_OR_RETURN(const jinja::Text whole, Render(texts.system, texts.before, texts.user));
  if (whole.empty()) return absl::InvalidArgumentError("the chat template writes nothing");
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, renderer_.Encode(whole));
  if (ends_with_answer && !texts.before.empty()) {
    const Exchange& last = texts.before.back();
    INLAY_ASSIGN_OR_RETURN(
        const jinja::Text before,
        Render(texts.system, texts.before.first(texts.before.size() - 1), last.user));
    const std::string said = absl::StrCat(before.bytes(), *last.answer);
    if (absl::StartsWith(whole.bytes(), said)) {
      INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> head,
                             renderer_.Encode(whole.Part(0, said.size())));
      // Where the answer's last word does not run on in what follows, the tokens after it are the
      // same whatever tokens the answer has.
      if (head.size() < tokens.size() && std::equal(head.begin(), head.end(), tokens.begin())) {
        tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(head.size()));
        return Continuation{.keep = conversation.size(), .tokens = std::move(tokens)};
      }
    }
  }
  const size_t most = std::min(conversation.size(), tokens.size() - 1);
  const auto [end, unused] = std::mismatch(
      conversation.begin(), conversation.begin() + static_cast<ptrdiff_t>(most), tokens.begin());
  const size_t keep = static_cast<size_t>(end - conversation.begin());
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<ptrdiff_t>(keep));
  return Continuation{.keep = keep, .tokens = std::move(tokens)};
}

absl::StatusOr<std::shared_ptr<const ChatFormat>> MakeChatFormat(const LoadedModel& model) {
  if (!HasChatTemplate(*model.file)) {
    INLAY_ASSIGN_OR_RETURN(
        FixedChatFormat fixed,
        FixedChatFormat::Create(*model.tokenizer, model.engine->info().chat_template));
    return std::make_shared<const FixedChatFormat>(std::move(fixed));
  }
  INLAY_ASSIGN_OR_RETURN(ChatRenderer renderer, ChatRenderer::Create(model));
  return std::make_shared<const TemplateChatFormat>(std::move(renderer));
}

}  // namespace inlay
