#include "serve/service/session_prompt.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/continue_chat.h"
#include "io/template/json_input.h"
#include "serve/service/session_reply.h"

namespace inlay::serve {

using Kind = SessionTurn::Kind;

absl::StatusOr<SessionAnswer> SessionPrompts::ReadAgain(const Session& session, size_t turn,
                                                        absl::Span<const int32_t> tokens) const {
  const SessionTurn& first = session.turns[session.AnswerTurn(turn)];
  INLAY_ASSIGN_OR_RETURN(SessionAnswerReader reader, ReaderOf(session, first, session.version));
  const bool raw = first.kind == Kind::kRaw;
  reader.Push(
      GeneratedText(tokenizer_, tokens, raw ? absl::Span<const int32_t>() : markers_[first.tools]));
  reader.Finish();
  return reader.Take();
}

absl::StatusOr<std::vector<AnswerEvent>> SessionPrompts::EventsOfTurn(
    const Session& session, const SessionTurn& turn) const {
  if (turn.kind != Kind::kContinuation) return EventsOf(turn.answer);
  const size_t index = static_cast<size_t>(&turn - session.turns.data());
  const SessionTurn& first = session.turns[session.AnswerTurn(index)];
  INLAY_ASSIGN_OR_RETURN(SessionAnswerReader reader, ReaderOf(session, first, turn.version));
  const std::vector<int32_t> tokens = session.Tokens(index + 1);
  const size_t begin = first.answer_begin();
  std::string begun;  // what the turn has ended
  reader.Push(GeneratedText(tokenizer_,
                            absl::MakeConstSpan(tokens).subspan(begin, turn.answer_begin() - begin),
                            markers_[first.tools], &begun));
  return EventsOf(turn.answer, reader.Take());
}

absl::StatusOr<ChatInput> SessionPrompts::InputOf(const Session& session, const Json& messages,
                                                  bool tools, const Json& variables) const {
  const Json none;
  INLAY_ASSIGN_OR_RETURN(ChatInput input,
                         ChatInput::From(messages, tools ? *session.tools : none, variables));
  // One time for all turns, since the text must stay the same.
  input.options.now = absl::FromUnixSeconds(session.created);
  return input;
}

absl::StatusOr<SessionAnswerReader> SessionPrompts::ReaderOf(const Session& session,
                                                             const SessionTurn& turn,
                                                             uint64_t version,
                                                             bool one_call) const {
  if (turn.kind == Kind::kRaw) return SessionAnswerReader();
  AnswerParserOptions options;
  options.in_thinking = turn.in_thinking;
  options.calls = turn.tools;
  if (turn.tools) {
    INLAY_ASSIGN_OR_RETURN(options.tools, jinja::FromJson(*session.tools));
  }
  const std::string id = absl::StrCat(
      absl::Hex(Xxh64Of(session.name.data(), session.name.size(), version), absl::kZeroPad16));
  return SessionAnswerReader(renderer_.answer_format(turn.tools), options, id, one_call);
}

// The prompt of the answer that the session ends with, as it was rendered.
absl::StatusOr<jinja::Text> SessionPrompts::RenderAnswered(const Session& session) const {
  const size_t first = session.AnswerTurn(session.turns.size() - 1);
  const SessionTurn& turn = session.turns[first];
  JsonDocument messages = session.Messages(first);
  for (const Json& message : *turn.messages) messages->push_back(message);
  INLAY_ASSIGN_OR_RETURN(const ChatInput input,
                         InputOf(session, *messages, turn.tools, *turn.variables));
  return renderer_.RenderText(input);
}

absl::StatusOr<SessionAnswerReader> SessionPrompts::PrepareMessages(const Session& session,
                                                                    const Call& call,
                                                                    SessionTurn* turn,
                                                                    AnswerRequest* request) const {
  if (!session.is_chat()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the session ", session.name,
        " goes on from raw text, which no chat template writes: give prompt or tokens"));
  }
  turn->kind = Kind::kAnswer;
  turn->messages = call.messages;
  turn->tools = !call.tools->is_null();
  turn->variables = session.variables;
  turn->variables->update(*call.template_variables);
  JsonDocument messages = session.Messages();
  for (const Json& message : *call.messages) messages->push_back(message);
  INLAY_ASSIGN_OR_RETURN(const ChatInput input,
                         InputOf(session, *messages, turn->tools, *turn->variables));
  INLAY_ASSIGN_OR_RETURN(const RenderedChat chat, renderer_.Render(input));
  INLAY_ASSIGN_OR_RETURN(const jinja::Text whole, renderer_.RenderText(input));
  std::optional<std::string> said;
  // The tokens of an answer that a stop text ended have that text, too.
  if (session.ends_with_answer() && session.turns.back().stop_text.empty()) {
    INLAY_ASSIGN_OR_RETURN(const jinja::Text before, RenderAnswered(session));
    said = absl::StrCat(before.bytes(), session.turns.back().answer.said);
  }
  request->prompt = session.Tokens();
  INLAY_ASSIGN_OR_RETURN(Continuation next, ContinueChat(renderer_, whole, said, request->prompt));
  turn->keep = next.keep;
  turn->tokens = std::move(next.tokens);
  turn->in_thinking = chat.in_thinking;
  request->prompt.resize(next.keep);
  request->prompt.insert(request->prompt.end(), turn->tokens.begin(), turn->tokens.end());
  const size_t prompted = chat.tokens.size() - chat.generation_prompt;
  request->marks = {request->prompt.size() - std::min(prompted, request->prompt.size())};
  request->options.shown_control = markers_[turn->tools];
  return ReaderOf(session, *turn, turn->version, call.one_call);
}

absl::StatusOr<SessionAnswerReader> SessionPrompts::PrepareRaw(const Session& session,
                                                               const Call& call, SessionTurn* turn,
                                                               AnswerRequest* request) const {
  if (session.waits_for_messages()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the session ", session.name,
                     " has messages or tools but no turn yet: the first one needs content or "
                     "messages"));
  }
  const bool goes_on = session.ends_with_answer();
  turn->kind = goes_on ? Kind::kContinuation : Kind::kRaw;
  request->prompt = session.Tokens();
  turn->keep = request->prompt.size();
  if (const auto* tokens = std::get_if<std::vector<int32_t>>(&call.prompts[0])) {
    turn->tokens = *tokens;
  } else {
    EncodeOptions options;
    if (!request->prompt.empty()) options.add_bos = false;
    options.parse_special = call.parse_special;
    INLAY_ASSIGN_OR_RETURN(turn->tokens,
                           tokenizer_.Encode(std::get<std::string>(call.prompts[0]), options));
  }
  request->prompt.insert(request->prompt.end(), turn->tokens.begin(), turn->tokens.end());
  if (!goes_on) return SessionAnswerReader();
  const SessionTurn& first = session.turns[session.AnswerTurn(session.turns.size() - 1)];
  request->options.shown_control = markers_[first.tools];
  INLAY_ASSIGN_OR_RETURN(SessionAnswerReader reader, ReaderOf(session, first, turn->version));
  reader.Push(GeneratedText(tokenizer_,
                            absl::MakeConstSpan(request->prompt).subspan(first.answer_begin()),
                            request->options.shown_control, &request->options.begun));
  return reader;
}

}  // namespace inlay::serve
