// The protocols of OpenAI and Anthropic: answers to chats and to texts, and what a chat becomes
// before it is answered.
#ifndef INLAY_SERVE_SERVICE_ANSWER_ROUTES_H_
#define INLAY_SERVE_SERVICE_ANSWER_ROUTES_H_

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/load_model.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/scheduler/answer_request.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/answer_reply.h"
#include "serve/service/fingerprints.h"
#include "serve/service/service_options.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"

namespace inlay::serve {

// Safe to use from several threads.
class AnswerRoutes {
 public:
  // What the arguments refer to must outlive the object, except the scheduler (null for a model
  // that answers nothing): it is destroyed before the object, which is told of its last answers.
  AnswerRoutes(const LoadedModel& model, const absl::StatusOr<ChatRenderer>& renderer,
               const ServiceOptions& options, const Fingerprints& fingerprints,
               Scheduler* scheduler, AnswerGrammars& grammars);

  // Sends what is still to be written.
  ~AnswerRoutes() { writers_.Finish(absl::InfiniteDuration()); }

  // /v1/chat/completions, /v1/completions, /v1/responses and /v1/messages
  void Answer(const Visit& visit);
  // /v1/messages/count_tokens
  void CountTokens(const Visit& visit) const;
  // /apply-template
  void ApplyTemplate(const Visit& visit) const;

  // Waits until the replies whose answers have ended are sent, or for `most`.
  void Finish(absl::Duration most) { writers_.Finish(most); }
  // Sends signs of life on streams where nothing was sent since `before`, a value of
  // SteadyNow().
  void Ping(absl::Time before);

  // What a call asks for, with the model's defaults; the prompt is left empty. InvalidArgument for
  // a token outside of the vocabulary.
  absl::StatusOr<AnswerRequest> MakeRequest(const Call& call, const Visit& visit) const;
  // What is told of the end of each answer to these requests, for the logs; null where there is
  // none. In the log of answers one that an error has ended is there as far as it came, as
  // cancelled.
  AnswerReply::OnAnswer LogAnswers(const std::vector<AnswerRequest>& requests,
                                   const Visit& visit) const;
  // Control tokens that show in answers without and with tools.
  const std::array<std::vector<int32_t>, 2>& markers() const { return markers_; }

 private:
  std::vector<int32_t> Markers(bool tools) const;
  absl::StatusOr<ChatInput> InputOf(const Call& call) const;
  absl::StatusOr<RenderedChat> Render(const Call& call) const;
  absl::Status TryAnswer(const Visit& visit);
  // The requests of a call, with their prompts, and how their answers are read.
  absl::StatusOr<std::vector<AnswerRequest>> MakeRequests(const Call& call, const Visit& visit,
                                                          AnswerReply::Reading* reading) const;
  // The grammar of answers to a call, in the format in which the model writes them; they begin
  // after the thoughts that the prompt has begun. A tool that is not strict and whose parameters
  // cannot be kept to takes any object.
  absl::StatusOr<std::shared_ptr<const AnswerGrammar>> GrammarFor(const Call& call,
                                                                  const AnswerFormat& format,
                                                                  bool in_thinking) const;
  // Where the scheduler refuses one of the requests, that is the reply.
  void SubmitAll(std::vector<AnswerRequest> requests, const Visit& visit,
                 const std::shared_ptr<AnswerReply>& answers);
  void Watch(const std::shared_ptr<AnswerReply>& answers);

  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
  const absl::StatusOr<ChatRenderer>& renderer_;
  const ServiceOptions& options_;
  const Fingerprints& fingerprints_;
  Scheduler* const scheduler_;
  AnswerGrammars& grammars_;
  const std::array<std::vector<int32_t>, 2> markers_;
  std::mutex mutex_;  // guards the next member
  std::vector<std::weak_ptr<AnswerReply>> watched_;
  Workers writers_;  // of replies; last: they use all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_ANSWER_ROUTES_H_
