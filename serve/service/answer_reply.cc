#include "serve/service/answer_reply.h"

#include <algorithm>
#include <utility>

#include "base/out_of_memory.h"

namespace inlay::serve {

class AnswerReply::Listener final : public AnswerListener {
 public:
  Listener(std::shared_ptr<AnswerReply> reply, size_t prompt)
      : reply_(std::move(reply)), prompt_(prompt) {}
  void OnStart(const AnswerUsage& usage) override { reply_->OnStart(usage); }
  bool OnUpdate(const AnswerUpdate& update) override { return reply_->OnUpdate(prompt_, update); }
  void OnEnd(const AnswerEnd& end) override { reply_->OnEnd(prompt_, end); }

 private:
  const std::shared_ptr<AnswerReply> reply_;
  const size_t prompt_;
};

AnswerReply::AnswerReply(Call call, const ReplyHeader& header, const Tokenizer& tokenizer,
                         const Reading& reading, const Visit& visit, size_t prompts,
                         OnAnswer on_answer, Workers& writers)
    : call_(std::move(call)),
      visit_(visit.WithoutRequest()),
      on_answer_(std::move(on_answer)),
      writers_(writers),
      tells_cached_(reading.tells_cached),
      writer_(MakeReplyWriter(call_, header, tokenizer)),
      choices_(prompts * call_.choices) {
  if (reading.format == nullptr) return;
  for (Choice& choice : choices_) choice.parser.emplace(*reading.format, reading.options);
}

std::shared_ptr<AnswerListener> AnswerReply::ListenerOf(size_t prompt) {
  return std::make_shared<Listener>(shared_from_this(), prompt);
}

void AnswerReply::Accepted() {
  const std::lock_guard lock(mutex_);
  if (call_.stream && !over_) stream_.Start(visit_.reply);
}

void AnswerReply::Ping(absl::Time before) {
  const std::lock_guard lock(mutex_);
  if (!over_ && stream_.started() && stream_.IsSilentSince(before)) stream_.Write(writer_->Ping());
}

void AnswerReply::Fail(const absl::Status& status) {
  const std::lock_guard lock(mutex_);
  FailLocked(status);
}

void AnswerReply::FailLocked(const absl::Status& status) noexcept {
  if (over_) return;
  over_ = true;
  if (!stream_.started()) return visit_.Fail(status);
  const absl::Status told = visit_.ForClient(status);
  stream_.Fail([&] { return writer_->Fail(told); });
}

void AnswerReply::OnStart(const AnswerUsage& usage) {
  const std::lock_guard lock(mutex_);
  if (over_ || begun_) return;
  // The first answer may be ready before the thread that submitted it has come to Accepted().
  if (call_.stream) stream_.Start(visit_.reply);
  begun_ = true;
  stream_.Write(writer_->Begin(usage.prompt_tokens, tells_cached_ ? usage.cached_tokens : 0));
}

std::vector<AnswerEvent> AnswerReply::Events(Choice& choice, absl::string_view text) {
  if (choice.parser.has_value()) return choice.parser->Push(text);
  return {{.kind = AnswerEvent::Kind::kText, .text = std::string(text)}};
}

void AnswerReply::Examine(size_t generated, Choice& choice, std::vector<AnswerEvent>& events) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i].kind == AnswerEvent::Kind::kReasoning) choice.reasoning_tokens = generated;
    if (events[i].kind == AnswerEvent::Kind::kCallEnd && call_.one_call) {
      choice.enough = true;
      events.resize(i + 1);
    }
  }
}

bool AnswerReply::OnUpdate(size_t prompt, const AnswerUpdate& update) {
  const std::lock_guard lock(mutex_);
  if (over_) return false;
  const size_t number = ChoiceOf(prompt, update.choice);
  Choice& choice = choices_[number];
  if (choice.enough) return false;
  std::vector<AnswerEvent> events = Events(choice, update.text);
  Examine(update.generated, choice, events);
  stream_.Write(writer_->Update({.choice = number, .events = events, .tokens = update.chosen}));
  return !choice.enough;
}

void AnswerReply::OnEnd(size_t prompt, const AnswerEnd& end) {
  if (on_answer_) on_answer_(prompt, end);
  const std::lock_guard lock(mutex_);
  if (over_) return;
  if (!end.status.ok()) return FailLocked(end.status);
  const size_t number = ChoiceOf(prompt, end.choice);
  Choice& choice = choices_[number];
  // A call that only the answer's end completes does not change why it ended.
  const StopReason reason = choice.enough ? StopReason::kEndOfGeneration : end.reason;
  if (choice.parser.has_value() && !choice.enough) {
    std::vector<AnswerEvent> events =
        choice.parser->Finish(/*ended=*/end.reason == StopReason::kEndOfGeneration);
    Examine(end.usage.completion_tokens, choice, events);
    stream_.Write(writer_->Update({.choice = number, .events = events, .tokens = {}}));
  }
  const ReplyEnd reply_end{.choice = number,
                           .reason = reason,
                           .stop_text = end.stop_text,
                           .usage = {.prompt_tokens = end.usage.prompt_tokens,
                                     .cached_tokens = tells_cached_ ? end.usage.cached_tokens : 0,
                                     .completion_tokens = end.usage.completion_tokens,
                                     .reasoning_tokens = std::min(choice.reasoning_tokens,
                                                                  end.usage.completion_tokens)}};
  stream_.Write(writer_->End(reply_end));
  if (++ends_ < choices_.size()) return;
  if (stream_.started()) {
    over_ = true;
    stream_.Write(writer_->Finish());
    return stream_.Finish();
  }
  // Many answers with probabilities take their time to be written, which the scheduler has not.
  const absl::Status status = OrOutOfMemory("this reply", [&] {
    writers_.Add([self = shared_from_this()] { self->SendWhole(); });
    return absl::OkStatus();
  });
  if (!status.ok()) return FailLocked(status);
  over_ = true;
}

void AnswerReply::SendWhole() {
  // Without the lock: since the reply is over nothing else uses the writer.
  absl::Status status = OrOutOfMemory("this reply", [&] {
    std::string body = writer_->Finish();
    visit_.SendText(std::move(body));
    return absl::OkStatus();
  });
  if (!status.ok()) visit_.Fail(status);
}

}  // namespace inlay::serve
