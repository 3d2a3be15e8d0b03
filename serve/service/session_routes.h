// /v1/sessions: conversations that the server keeps.
#ifndef INLAY_SERVE_SERVICE_SESSION_ROUTES_H_
#define INLAY_SERVE_SERVICE_SESSION_ROUTES_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemma_like/chat/chat_renderer.h"
#include "io/store/state_store.h"
#include "io/tokenizer/tokenizer.h"
#include "serve/api/call.h"
#include "serve/api/parse_options.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/session_body.h"
#include "serve/service/session_prompt.h"
#include "serve/service/session_turn.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"
#include "serve/sessions/session_expiry.h"
#include "serve/sessions/session_store.h"

namespace inlay::serve {

// What sessions use of the service. All must outlive the SessionRoutes.
struct SessionHost {
  const Tokenizer& tokenizer;
  const ChatRenderer& renderer;
  Scheduler& scheduler;
  const std::string& service_fingerprint;  // see Fingerprints
  // Turns of sessions that have turns of another one are refused; else their tokens are
  // computed again, as those of any prompt.
  bool own_sessions_only;
  // Control tokens that show in answers without and with tools.
  const std::array<std::vector<int32_t>, 2>& markers;
  const CallDefaults& defaults;  // what requests leave out
  // Resolves a call's options; the prompt is left empty.
  std::function<absl::StatusOr<AnswerRequest>(const Call&, const Visit&)> make_request;
  // What is told of the end of an answer to this request; may be null.
  std::function<std::function<void(const AnswerEnd&)>(const AnswerRequest&, const Visit&)> logger;
  std::function<void(absl::string_view sentence)> note;  // see ServiceOptions
};

// Replies to requests for sessions, and to those for their turns once these are stored. Safe to use
// from several threads.
class SessionRoutes {
 public:
  SessionRoutes(const SessionHost& host, std::shared_ptr<StateStore> store,
                const SessionLimits& limits = {});

  // Replies to a request whose path is /v1/sessions or below, on a thread of its own: who waits for
  // the store keeps no other requests waiting.
  void Handle(const Visit& visit);
  // Begins no more requests, and waits for those that are in progress. To be called before the
  // scheduler is destroyed, which ends the turns.
  void Stop() { threads_ = nullptr; }
  // For figures of it.
  const SessionStore& store() const { return store_; }
  // Waits until the turns that have ended are stored, or for `most`.
  void Finish(absl::Duration most) { savers_.Finish(most); }
  // Sends signs of life on streams where nothing was sent since `before`, a value of
  // SteadyNow().
  void Ping(absl::Time before);

 private:
  void Respond(const Visit& visit);
  // The reply to a request that needs no answer of the model.
  absl::StatusOr<Json> Reply(const Visit& visit, absl::string_view name, absl::string_view action);
  absl::StatusOr<Json> List(const Visit& visit);
  absl::StatusOr<Json> Create(const Visit& visit);
  absl::StatusOr<Json> Show(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> Delete(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> Fork(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> Rewind(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> SaveDocument(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> LoadDocument(const Visit& visit, absl::string_view name);

  // The turn of this session that is computed now; NotFound when there is none.
  struct Running {
    std::shared_ptr<RunningTurn> turn;
    uint64_t answer;  // as the scheduler knows it
  };
  absl::StatusOr<Running> FindRunning(const Visit& visit, absl::string_view name);
  absl::Status Follow(const Visit& visit, absl::string_view name);
  absl::StatusOr<Json> StopTurn(const Visit& visit, absl::string_view name);

  void Turn(const Visit& visit, absl::string_view name);
  absl::Status TryTurn(const Visit& visit, absl::string_view name);
  absl::Status Probabilities(const Visit& visit, absl::string_view name);
  absl::Status StartTurn(const Visit& visit, const TurnBody& body, Session session,
                         SessionStore::Hold hold);

  // The session, which must be one of this model's vocabulary.
  absl::StatusOr<Session> LoadOwn(const Visit& visit, absl::string_view name);
  // The same for one that is to be changed.
  absl::StatusOr<Session> LoadOwn(SessionStore::Hold& hold, absl::string_view name);
  absl::StatusOr<Session> CheckOwn(absl::StatusOr<Session> session) const;
  absl::Status CheckFingerprints(const Session& session) const;
  // Stores the session as a new one of its name, and returns its JSON. Errors of
  // SessionStore::Create.
  absl::StatusOr<Json> Store(const Visit& visit, Session session);
  absl::Status GoTo(const SessionPlace& place, Session* session) const;
  absl::Status CheckTokens(const Session& session) const;

  // Requests that are answered or wait for a thread, at most.
  static constexpr size_t kMostWaiting = 1024;

  const SessionHost host_;
  const SessionPrompts prompts_;
  const std::string vocabulary_;
  SessionStore store_;
  SessionExpiry expiry_;
  struct Entry {
    std::weak_ptr<RunningTurn> turn;
    uint64_t answer = 0;  // 0: not submitted yet
  };
  std::mutex mutex_;  // guards the next member
  std::vector<Entry> running_;
  std::atomic<size_t> waiting_ = 0;
  // threads_: requests. savers_: stores turns and writes probabilities. Declared last: they use the
  // other members.
  Workers savers_;
  std::unique_ptr<Workers> threads_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_ROUTES_H_
