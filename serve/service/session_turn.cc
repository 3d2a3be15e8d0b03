#include "serve/service/session_turn.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "serve/api/reply_parts.h"
#include "serve/api/sse.h"
#include "serve/service/session_reply.h"

namespace inlay::serve {
namespace {

// The last event of a stream: the turn, or why there is none.
std::string TurnEvent(const Session& session, const SessionTurn& turn) {
  Json json = {{"type", "turn"}};
  json.update(TurnJson(session, turn));
  return SseData(json);
}

std::string ErrorEvent(const absl::Status& status) {
  Json json = {{"type", "error"}};
  json.update(OpenAiError(status));
  return SseData(json);
}

}  // namespace

RunningTurn::RunningTurn(Parts parts)
    : client_(parts.visit.client.identity),
      name_(parts.session.name),
      parts_(std::move(parts)),
      hold_(std::move(parts_.hold)) {}

void RunningTurn::StartStream() {
  if (parts_.stream && state_ != State::kOver) stream_.Start(parts_.visit.reply);
}

bool RunningTurn::Follow(const std::shared_ptr<HttpReply>& reply) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kOver) return false;
  std::string bytes = SseData(RunningJson(parts_.session, parts_.turn));
  for (const AnswerEvent& event : said_) bytes += SseData(EventJson(event));
  stream_.Join(reply, std::move(bytes));
  return true;
}

bool RunningTurn::ended() {
  const std::lock_guard lock(mutex_);
  return state_ == State::kOver;
}

void RunningTurn::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
}

void RunningTurn::Accepted() {
  const std::lock_guard lock(mutex_);
  StartStream();
}

void RunningTurn::Ping(absl::Time before) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kOver && stream_.IsSilentSince(before)) stream_.Write(std::string(kSsePing));
}

void RunningTurn::Fail(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::kAnswering) FailLocked(status);
}

void RunningTurn::FailLocked(const absl::Status& status) noexcept {
  state_ = State::kOver;
  // First, so that who reads the reply finds the session free.
  hold_.reset();
  const absl::Status told = parts_.visit.ForClient(status);
  stream_.Fail([&] { return ErrorEvent(told); });
  if (!stream_.started()) parts_.visit.SendError(told);
}

void RunningTurn::OnStart(const AnswerUsage& usage) {
  const std::lock_guard lock(mutex_);
  // The first answer may be ready before the thread that submitted it has come to Accepted().
  StartStream();
  parts_.turn.usage.prompt_tokens = usage.prompt_tokens;
  parts_.turn.usage.cached_tokens = usage.cached_tokens;
}

void RunningTurn::WriteEvents(std::vector<AnswerEvent> events, size_t generated) {
  std::string bytes;
  for (const AnswerEvent& event : events) {
    if (event.kind == AnswerEvent::Kind::kReasoning) reasoning_tokens_ = generated;
    if (stream_.has_readers()) bytes += SseData(EventJson(event));
    Remember(event);
  }
  stream_.Write(bytes);
}

void RunningTurn::Remember(const AnswerEvent& event) {
  const bool delta = event.kind == AnswerEvent::Kind::kText ||
                     event.kind == AnswerEvent::Kind::kReasoning ||
                     event.kind == AnswerEvent::Kind::kCallArguments;
  if (delta && !said_.empty() && said_.back().kind == event.kind &&
      said_.back().call == event.call) {
    said_.back().text += event.text;
  } else {
    said_.push_back(event);
  }
}

bool RunningTurn::OnUpdate(const AnswerUpdate& update) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kAnswering || parts_.reader.has_enough()) return false;
  WriteEvents(parts_.reader.Push(update.text), update.generated);
  return !parts_.reader.has_enough() && !stopped_;
}

void RunningTurn::Complete(const AnswerEnd& end) {
  // A call that only the answer's end completes does not change why it ended.
  const StopReason reason = parts_.reader.has_enough() ? StopReason::kEndOfGeneration : end.reason;
  WriteEvents(parts_.reader.Finish(/*ended=*/end.reason == StopReason::kEndOfGeneration),
              end.usage.completion_tokens);
  SessionTurn& turn = parts_.turn;
  turn.answer = parts_.reader.Take();
  turn.tokens.insert(turn.tokens.end(), end.tokens.begin(), end.tokens.end());
  turn.reason = reason;
  turn.stop_text = end.stop_text;
  turn.usage = {.prompt_tokens = end.usage.prompt_tokens,
                .cached_tokens = end.usage.cached_tokens,
                .completion_tokens = end.usage.completion_tokens,
                .reasoning_tokens = std::min(reasoning_tokens_, end.usage.completion_tokens)};
  turn.created = absl::ToUnixSeconds(absl::Now());
  parts_.session.version = turn.version;
  parts_.session.updated = turn.created;
  // A copy: until it is saved, others may still follow the turn.
  parts_.session.turns.push_back(turn);
}

void RunningTurn::OnEnd(const AnswerEnd& end) {
  const std::lock_guard lock(mutex_);
  if (state_ != State::kAnswering) return;
  if (parts_.on_answer) parts_.on_answer(end);
  if (!end.status.ok()) return FailLocked(end.status);
  const absl::Status status = OrOutOfMemory("this turn", [&] {
    Complete(end);
    state_ = State::kSaving;
    // The store may take its time, which the scheduler has not.
    parts_.savers->Add([self = shared_from_this()] { self->SaveAndReply(); });
    return absl::OkStatus();
  });
  if (!status.ok()) FailLocked(status);
}

void RunningTurn::SaveAndReply() {
  std::optional<SessionTurn> theirs;
  absl::Status saved = OrOutOfMemory("this turn", [&] { return Save(&theirs); });
  const std::lock_guard lock(mutex_);
  SessionTurn& turn = parts_.turn;
  // Without a seed of its own the request had another one there, and another answer.
  if (theirs.has_value() && (!stream_.has_readers() || theirs->tokens == turn.tokens)) {
    turn = *std::move(theirs);
    saved = absl::OkStatus();
  }
  if (!saved.ok()) return FailLocked(saved);
  const absl::Status told = OrOutOfMemory("this turn", [&] {
    hold_.reset();
    if (stream_.has_readers()) stream_.Write(TurnEvent(parts_.session, turn));
    stream_.Finish();
    if (!stream_.started()) parts_.visit.Send(TurnJson(parts_.session, turn));
    state_ = State::kOver;
    return absl::OkStatus();
  });
  if (!told.ok()) FailLocked(told);
}

absl::Status RunningTurn::Save(std::optional<SessionTurn>* theirs) const {
  const absl::Status saved = parts_.store->Save(*hold_, parts_.session);
  if (!absl::IsAborted(saved)) return saved;
  INLAY_ASSIGN_OR_RETURN(const Session stored, parts_.store->Load(client_, name_));
  const SessionTurn* const other = stored.FindKey(parts_.turn.idempotency_key);
  if (other != nullptr && other->request_hash == parts_.turn.request_hash) *theirs = *other;
  return saved;
}

void StreamTurn(const Visit& visit, const Session& session, const SessionTurn& turn,
                const std::vector<AnswerEvent>& events) {
  std::string bytes;
  for (const AnswerEvent& event : events) bytes += SseData(EventJson(event));
  SendEvents(*visit.reply, bytes + TurnEvent(session, turn));
}

}  // namespace inlay::serve
