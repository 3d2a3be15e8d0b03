// One turn of a session on its way: from the request to the record in the store and the reply.
#ifndef INLAY_SERVE_SERVICE_SESSION_TURN_H_
#define INLAY_SERVE_SERVICE_SESSION_TURN_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gemma_like/chat/answer_event.h"
#include "serve/http/http_server.h"
#include "serve/scheduler/answer_request.h"
#include "serve/service/event_stream.h"
#include "serve/service/session_answer.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"
#include "serve/sessions/session.h"
#include "serve/sessions/session_store.h"

namespace inlay::serve {

// The session with the turn is saved when the answer has ended, and only then the reply ends. A
// turn that fails leaves the session as it was. Other clients may follow the answer.
class RunningTurn final : public AnswerListener, public std::enable_shared_from_this<RunningTurn> {
 public:
  struct Parts {
    Session session;   // before the turn
    SessionTurn turn;  // without what the answer adds
    SessionStore* store;
    SessionStore::Hold hold;
    // Has read what the answer goes on with. When it has enough the answer ends.
    SessionAnswerReader reader;
    bool stream = false;
    Visit visit;
    Workers* savers;                                  // on whose threads the turn is saved
    std::function<void(const AnswerEnd&)> on_answer;  // must not throw; null: none
  };
  // The store and the savers must outlive the turn.
  explicit RunningTurn(Parts parts);

  // The request is accepted: starts the stream, if there is to be one.
  void Accepted();
  // The turn failed before or after that; later news is ignored.
  void Fail(const absl::Status& status);
  // Sends a sign of life where nothing was sent since `before`, a value of
  // SteadyNow().
  void Ping(absl::Time before);

  // Streams the turn to this reply as well: what it has said, and what follows. False when it has
  // ended.
  bool Follow(const std::shared_ptr<HttpReply>& reply);
  bool ended();
  // Ends the answer at its next text, if the scheduler does not know of it yet.
  void Stop();

  // Whether this is a turn of the client's session of this name.
  bool IsOf(absl::string_view client, absl::string_view name) const {
    return name == name_ && client == client_;
  }

  void OnStart(const AnswerUsage& usage) override;
  bool OnUpdate(const AnswerUpdate& update) override;
  void OnEnd(const AnswerEnd& end) override;

 private:
  // Under the lock, but for SaveAndReply and Save.
  void StartStream();
  void FailLocked(const absl::Status& status) noexcept;
  void WriteEvents(std::vector<AnswerEvent> events, size_t generated);
  void Remember(const AnswerEvent& event);
  void Complete(const AnswerEnd& end);
  void SaveAndReply();
  // Stores the turn, without the lock: the store may take its time. Errors: Aborted where another
  // server has changed the session, NotFound after it was deleted; those of the store. Where that
  // other server has stored the turn of this same request, which was sent twice, it is in `theirs`.
  absl::Status Save(std::optional<SessionTurn>* theirs) const;

  enum class State {
    kAnswering,
    kSaving,  // the answer has ended: nothing changes parts_ and hold_, which Save reads
    kOver,    // complete, or failed
  };

  const std::string client_, name_;  // whose session, and which
  std::mutex mutex_;                 // guards the members below; its holders wait for nothing
  State state_ = State::kAnswering;
  Parts parts_;
  std::optional<SessionStore::Hold> hold_;  // until the reply ends
  size_t reasoning_tokens_ = 0;
  bool stopped_ = false;
  EventStream stream_;             // started where the request asks for one
  std::vector<AnswerEvent> said_;  // for those who follow later; texts are joined
};

// Streams a turn that is in the session, `events` of which are what its own stream told.
void StreamTurn(const Visit& visit, const Session& session, const SessionTurn& turn,
                const std::vector<AnswerEvent>& events);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SESSION_TURN_H_
