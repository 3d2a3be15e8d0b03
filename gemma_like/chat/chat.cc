#include "gemma_like/chat/chat.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/builtin_templates.h"

namespace inlay {

AnswerParser ChatFormat::StartAnswer(bool) const { return AnswerParser(AnswerFormat()); }

// A conversation is the system turn, if any, then for each turn
//   before_user, text, before_answer, answer, after_answer.
struct FixedChatFormat::Markup {
  const char* before_system;
  const char* after_system;
  const char* before_user;
  const char* before_answer;
  const char* after_answer;
  std::vector<const char*> control_tokens;  // that a vocabulary must have
  bool strips;                              // white space around users' texts is dropped
  bool strips_system = false;               // and around the system's
  bool begins_with_bos = false;             // whatever the vocabulary says
};

namespace {

enum class Trust { kTemplate, kText };

absl::Status Append(const Tokenizer& tokenizer, absl::string_view text, Trust trust,
                    std::vector<int32_t>& tokens) {
  if (text.empty()) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(
      const std::vector<int32_t> more,
      tokenizer.Encode(text, {.add_bos = false, .parse_special = trust == Trust::kTemplate}));
  tokens.insert(tokens.end(), more.begin(), more.end());
  return absl::OkStatus();
}

}  // namespace

const FixedChatFormat::Markup& FixedChatFormat::MarkupOf(ChatTemplate chat_template) {
  // Gemma has no system role: instructions come first in the user's turn.
  static const Markup gemma{.before_system = "<start_of_turn>user\n",
                            .after_system = "\n\n",
                            .before_user = "<start_of_turn>user\n",
                            .before_answer = "<end_of_turn>\n<start_of_turn>model\n",
                            .after_answer = "<end_of_turn>\n",
                            .control_tokens = {"<start_of_turn>", "<end_of_turn>"},
                            .strips = true,
                            .begins_with_bos = true};
  static const Markup gemma4{.before_system = "<|turn>system\n",
                             .after_system = "<turn|>\n<|turn>user\n",
                             .before_user = "<|turn>user\n",
                             .before_answer = "<turn|>\n<|turn>model\n",
                             .after_answer = "<turn|>\n",
                             .control_tokens = {"<|turn>", "<turn|>"},
                             .strips = true,
                             .strips_system = true,
                             .begins_with_bos = true};
  static const Markup granite{
      .before_system = "<|start_of_role|>system<|end_of_role|>",
      .after_system = "<|end_of_text|>\n<|start_of_role|>user<|end_of_role|>",
      .before_user = "<|start_of_role|>user<|end_of_role|>",
      .before_answer = "<|end_of_text|>\n<|start_of_role|>assistant<|end_of_role|>",
      .after_answer = "<|end_of_text|>\n",
      .control_tokens = {"<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"},
      .strips = false};
  static const Markup chat_ml{.before_system = "<|im_start|>system\n",
                              .after_system = "<|im_end|>\n<|im_start|>user\n",
                              .before_user = "<|im_start|>user\n",
                              .before_answer = "<|im_end|>\n<|im_start|>assistant\n",
                              .after_answer = "<|im_end|>\n",
                              .control_tokens = {"<|im_start|>", "<|im_end|>"},
                              .strips = false};
  static const Markup none{.before_system = "",
                           .after_system = "\n",
                           .before_user = "",
                           .before_answer = "\n",
                           .after_answer = "\n",
                           .control_tokens = {},
                           .strips = false};
  switch (chat_template) {
    case ChatTemplate::kGemma:
      return gemma;
    case ChatTemplate::kGemma4:
      return gemma4;
    case ChatTemplate::kGranite:
      return granite;
    case ChatTemplate::kChatMl:
      return chat_ml;
    case ChatTemplate::kNone:
      break;
  }
  return none;
}

absl::Span<const char* const> FixedChatFormat::ControlTokens(ChatTemplate chat_template) {
  return MarkupOf(chat_template).control_tokens;
}

FixedChatFormat::FixedChatFormat(const Tokenizer& tokenizer, ChatTemplate chat_template)
    : tokenizer_(&tokenizer),
      markup_(&MarkupOf(chat_template)),
      answer_format_(AnswerFormat::Of(BuiltinTemplate(chat_template))),
      fingerprint_(
          Xxh64Of(BuiltinTemplate(chat_template).data(), BuiltinTemplate(chat_template).size())) {}

AnswerParser FixedChatFormat::StartAnswer(bool in_thinking) const {
  return AnswerParser(answer_format_, {.in_thinking = in_thinking});
}

absl::StatusOr<FixedChatFormat> FixedChatFormat::Create(const Tokenizer& tokenizer,
                                                        ChatTemplate chat_template) {
  for (const char* token : ControlTokens(chat_template)) {
    if (!tokenizer.FindSpecial(token).has_value()) {
      return absl::InvalidArgumentError(absl::StrCat("the model's chat template needs the token '",
                                                     token, "', which its vocabulary lacks"));
    }
  }
  return FixedChatFormat(tokenizer, chat_template);
}

absl::Status FixedChatFormat::AppendUser(absl::string_view user,
                                         std::vector<int32_t>& tokens) const {
  if (markup_->strips) user = absl::StripAsciiWhitespace(user);
  INLAY_RETURN_IF_ERROR(Append(*tokenizer_, user, Trust::kText, tokens));
  return Append(*tokenizer_, markup_->before_answer, Trust::kTemplate, tokens);
}

absl::StatusOr<std::vector<int32_t>> FixedChatFormat::FirstTurn(absl::string_view system,
                                                                absl::string_view user) const {
  // Gemma's models were trained with BOS. Some of their files say that none is to be added, since
  // their own template prints it.
  EncodeOptions bos;
  if (markup_->begins_with_bos) bos.add_bos = true;
  INLAY_ASSIGN_OR_RETURN(std::vector<int32_t> tokens, tokenizer_->Encode("", bos));
  if (system.empty()) {
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, markup_->before_user, Trust::kTemplate, tokens));
  } else {
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, markup_->before_system, Trust::kTemplate, tokens));
    if (markup_->strips_system) system = absl::StripAsciiWhitespace(system);
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, system, Trust::kText, tokens));
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, markup_->after_system, Trust::kTemplate, tokens));
  }
  INLAY_RETURN_IF_ERROR(AppendUser(user, tokens));
  return tokens;
}

absl::StatusOr<std::vector<int32_t>> FixedChatFormat::NextTurn(
    absl::Span<const int32_t> conversation, absl::string_view user) const {
  std::vector<int32_t> tokens;
  // Without roles an answer may have ended its line itself.
  const bool needs_end = !markup_->control_tokens.empty() || conversation.empty() ||
                         !absl::EndsWith(tokenizer_->Piece(conversation.back()), "\n");
  if (needs_end)
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, markup_->after_answer, Trust::kTemplate, tokens));
  INLAY_RETURN_IF_ERROR(Append(*tokenizer_, markup_->before_user, Trust::kTemplate, tokens));
  INLAY_RETURN_IF_ERROR(AppendUser(user, tokens));
  return tokens;
}

absl::StatusOr<Continuation> FixedChatFormat::Next(const ChatTexts& texts,
                                                   absl::Span<const int32_t> conversation,
                                                   bool) const {
  Continuation next{.keep = conversation.size(), .tokens = {}, .in_thinking = false};
  if (!conversation.empty()) {
    INLAY_ASSIGN_OR_RETURN(next.tokens, NextTurn(conversation, texts.user));
    return next;
  }
  // All of it from its texts.
  INLAY_ASSIGN_OR_RETURN(
      next.tokens,
      FirstTurn(texts.system, texts.before.empty() ? texts.user : texts.before.front().user));
  for (size_t i = 0; i < texts.before.size(); ++i) {
    const std::optional<std::string>& answer = texts.before[i].answer;
    if (!answer.has_value()) {
      return absl::FailedPreconditionError(
          "the chat was saved by a version of this program that kept no answers, without which it "
          "cannot be computed anew");
    }
    INLAY_RETURN_IF_ERROR(Append(*tokenizer_, *answer, Trust::kText, next.tokens));
    const bool is_last = i + 1 == texts.before.size();
    INLAY_ASSIGN_OR_RETURN(const std::vector<int32_t> turn,
                           NextTurn(next.tokens, is_last ? texts.user : texts.before[i + 1].user));
    next.tokens.insert(next.tokens.end(), turn.begin(), turn.end());
  }
  return next;
}

}  // namespace inlay
