// Sends the answers to one request to its client, as they come.
#ifndef INLAY_SERVE_SERVICE_ANSWER_REPLY_H_
#define INLAY_SERVE_SERVICE_ANSWER_REPLY_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gemma_like/chat/answer_format.h"
#include "gemma_like/chat/answer_parser.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/api/reply.h"
#include "serve/scheduler/answer_request.h"
#include "serve/service/event_stream.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"

namespace inlay::serve {

// One client's reply, made of the answers to one or several prompts.
class AnswerReply : public std::enable_shared_from_this<AnswerReply> {
 public:
  // Called with each answer that has ended, with an error or without: the prompt's number, and the
  // answer. It must not throw.
  using OnAnswer = std::function<void(size_t prompt, const AnswerEnd& end)>;

  // `format` and `options` are how answers are read; null for completions, whose answers are text.
  // The tokenizer must outlive the object.
  struct Reading {
    const AnswerFormat* format = nullptr;
    AnswerParserOptions options;
    // Whether the reply tells how many tokens of the prompt were reused, which depends on the
    // requests before it; else it tells 0.
    bool tells_cached = true;
  };
  // On threads of `writers`, which must outlive the object, replies that are no streams are
  // written. Of the visit all but the request is kept.
  AnswerReply(Call call, const ReplyHeader& header, const Tokenizer& tokenizer,
              const Reading& reading, const Visit& visit, size_t prompts, OnAnswer on_answer,
              Workers& writers);

  // The listener of the answers to the prompt of this number.
  std::shared_ptr<AnswerListener> ListenerOf(size_t prompt);

  // Starts the stream, if the call asks for one: the request is accepted.
  void Accepted();

  // The request failed before or after that; later news is ignored.
  void Fail(const absl::Status& status);

  // Sends a sign of life where nothing was sent since `before`, a value of
  // SteadyNow().
  void Ping(absl::Time before);

 private:
  class Listener;
  struct Choice {
    std::optional<AnswerParser> parser;
    size_t reasoning_tokens = 0;
    bool enough = false;  // the one call that was asked for is complete
  };

  void OnStart(const AnswerUsage& usage);
  bool OnUpdate(size_t prompt, const AnswerUpdate& update);
  void OnEnd(size_t prompt, const AnswerEnd& end);

  // On a writer's thread: the reply to a call for no stream, once all answers have ended.
  void SendWhole();
  size_t ChoiceOf(size_t prompt, size_t choice) const { return prompt * call_.choices + choice; }
  // Under the lock, as the next two.
  void FailLocked(const absl::Status& status) noexcept;
  std::vector<AnswerEvent> Events(Choice& choice, absl::string_view text);
  // Counts the tokens of thoughts, and drops what follows the call of an answer that may have one.
  void Examine(size_t generated, Choice& choice, std::vector<AnswerEvent>& events);

  const Call call_;
  const Visit visit_;  // without its request
  const OnAnswer on_answer_;
  Workers& writers_;
  const bool tells_cached_;
  std::mutex mutex_;  // guards the members below
  const std::unique_ptr<ReplyWriter> writer_;
  std::vector<Choice> choices_;
  EventStream stream_;  // started where the call asks for one
  bool begun_ = false;  // the writer has
  bool over_ = false;   // the reply has ended: complete, or failed
  size_t ends_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_REPLY_H_
