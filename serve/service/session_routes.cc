#include "serve/service/session_routes.h"

#include <optional>
#include <random>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/format.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/token_ids.h"
#include "base/xxh64.h"
#include "io/json/parse_json.h"
#include "serve/api/reply_parts.h"
#include "serve/service/session_probabilities.h"
#include "serve/service/session_reply.h"
#include "serve/sessions/session_json.h"

namespace inlay::serve {
namespace {

constexpr absl::string_view kPath = "/v1/sessions";
constexpr size_t kThreads = 2;
constexpr size_t kSavers = 2;

// Two models with the same vocabulary can go on with each other's tokens.
std::string VocabularyOf(const Tokenizer& tokenizer) {
  Xxh64 hash(tokenizer.size());
  for (int32_t id = 0; static_cast<size_t>(id) < tokenizer.size(); ++id) {
    const absl::string_view text = tokenizer.TokenText(id);
    const uint64_t size = text.size();
    hash.Update(&size, sizeof(size));
    hash.Update(text.data(), text.size());
  }
  return absl::StrCat(absl::Hex(hash.Digest(), absl::kZeroPad16));
}

std::string RandomName() {
  thread_local std::random_device device;
  const uint64_t high = device(), low = device();
  return Format("s-%016x", high << 32 | low);
}

// The client, as its sessions are found again.
absl::string_view ClientOf(const Visit& visit) { return visit.client.identity; }

int64_t NowSeconds() { return absl::ToUnixSeconds(absl::Now()); }

// Requests of the original are not requests of the copy.
void ForgetKeys(Session& session) {
  for (SessionTurn& turn : session.turns) {
    turn.idempotency_key.clear();
    turn.request_hash = 0;
  }
}

absl::Status StaleParent(const Session& session, uint64_t parent) {
  return absl::AbortedError(absl::StrCat("the session ", session.name, " is at version ",
                                         session.version, ", not at ", parent));
}

// An error that also has the session's version as a number.
void SendStale(const Visit& visit, const absl::Status& status, uint64_t version) {
  Json body = OpenAiError(status);
  body["error"]["version"] = version;
  visit.reply->Send(HttpStatusOf(status), "application/json", DumpJson(body));
}

}  // namespace

SessionRoutes::SessionRoutes(const SessionHost& host, std::shared_ptr<StateStore> store,
                             const SessionLimits& limits)
    : host_(host),
      prompts_(host.tokenizer, host.renderer, host.markers),
      vocabulary_(VocabularyOf(host.tokenizer)),
      store_(std::move(store), limits, host.note),
      expiry_(store_),
      savers_(kSavers),
      threads_(std::make_unique<Workers>(kThreads)) {}

void SessionRoutes::Ping(absl::Time before) {
  std::vector<Entry> running;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(running_, [](const Entry& entry) { return entry.turn.expired(); });
    running = running_;
  }
  for (const Entry& entry : running) {
    if (const std::shared_ptr<RunningTurn> turn = entry.turn.lock()) turn->Ping(before);
  }
}

void SessionRoutes::Handle(const Visit& visit) {
  // A store that hangs keeps all threads; how many bytes wait then the HTTP server bounds.
  const size_t before = waiting_++;
  std::shared_ptr<void> place(nullptr, [this](void*) { --waiting_; });
  if (before >= kMostWaiting) {
    return visit.Fail(absl::ResourceExhaustedError(
        absl::StrCat("too many requests to sessions wait already: ", before)));
  }
  threads_->Add([this, visit, place = std::move(place)] {
    const absl::Status status = OrOutOfMemory("this request", [&] {
      Respond(visit);
      return absl::OkStatus();
    });
    if (!status.ok()) visit.Fail(status);
  });
}

void SessionRoutes::Respond(const Visit& visit) {
  absl::string_view name = absl::StripPrefix(visit.request.path, kPath);
  absl::ConsumePrefix(&name, "/");
  absl::string_view action;
  if (const size_t slash = name.find('/'); slash != absl::string_view::npos) {
    action = name.substr(slash + 1);
    name = name.substr(0, slash);
  }
  if (visit.request.method == "POST" && action == "turns") return Turn(visit, name);
  if (visit.request.method == "GET" && action == "running") {
    if (const absl::Status status = Follow(visit, name); !status.ok()) visit.Fail(status);
    return;
  }
  if (visit.request.method == "POST" && action == "probabilities") {
    if (const absl::Status status = Probabilities(visit, name); !status.ok()) visit.Fail(status);
    return;
  }
  absl::StatusOr<Json> reply = Reply(visit, name, action);
  if (!reply.ok()) return visit.Fail(reply.status());
  visit.Send(*std::move(reply));
}

absl::StatusOr<Json> SessionRoutes::Reply(const Visit& visit, absl::string_view name,
                                          absl::string_view action) {
  const std::string& method = visit.request.method;
  if (name.empty() && action.empty()) {
    if (method == "GET") return List(visit);
    if (method == "POST") return Create(visit);
  } else if (action.empty()) {
    if (method == "GET") return Show(visit, name);
    if (method == "DELETE") return Delete(visit, name);
  } else if (method == "POST") {
    if (action == "fork") return Fork(visit, name);
    if (action == "rewind") return Rewind(visit, name);
    if (action == "save") return SaveDocument(visit, name);
    if (action == "load") return LoadDocument(visit, name);
    if (action == "stop") return StopTurn(visit, name);
  }
  return absl::NotFoundError(absl::StrCat("there is no ", method, " ", visit.request.path));
}

absl::StatusOr<Json> SessionRoutes::List(const Visit& visit) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<SessionSummary> sessions, store_.List(ClientOf(visit)));
  Json list = Json::array();
  for (const SessionSummary& session : sessions) list.push_back(SummaryJson(session));
  return Json{{"object", "list"}, {"data", std::move(list)}};
}

absl::StatusOr<Json> SessionRoutes::Create(const Visit& visit) {
  INLAY_ASSIGN_OR_RETURN(Session session, ParseNewSession(visit.request.body, host_.defaults));
  if (session.name.empty()) session.name = RandomName();
  session.vocabulary = vocabulary_;
  session.created = NowSeconds();
  return Store(visit, std::move(session));
}

absl::StatusOr<Json> SessionRoutes::Store(const Visit& visit, Session session) {
  session.updated = NowSeconds();
  INLAY_ASSIGN_OR_RETURN(const SessionStore::Hold hold,
                         store_.Acquire(ClientOf(visit), session.name));
  INLAY_RETURN_IF_ERROR(store_.Create(hold, ClientOf(visit), session));
  return SessionJson(session);
}

absl::StatusOr<Session> SessionRoutes::LoadOwn(const Visit& visit, absl::string_view name) {
  return CheckOwn(store_.Load(ClientOf(visit), name));
}

absl::StatusOr<Session> SessionRoutes::LoadOwn(SessionStore::Hold& hold, absl::string_view name) {
  return CheckOwn(store_.Load(hold, name));
}

absl::StatusOr<Session> SessionRoutes::CheckOwn(absl::StatusOr<Session> session) const {
  if (!session.ok() || session->vocabulary == vocabulary_) return session;
  return absl::FailedPreconditionError(
      absl::StrCat("the session ", session->name, " was made with a model of another vocabulary, ",
                   "and can only be read, saved and deleted here"));
}

absl::Status SessionRoutes::CheckFingerprints(const Session& session) const {
  for (const SessionTurn& turn : session.turns) {
    // Rewinds compute nothing.
    if (turn.kind == SessionTurn::Kind::kCut) continue;
    if (turn.service_fingerprint == host_.service_fingerprint) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("version ", turn.version, " of the session ", session.name,
                     " was computed by ", turn.service_fingerprint, ", and this server, which is ",
                     host_.service_fingerprint, ", goes on with its own sessions only"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> SessionRoutes::Show(const Visit& visit, absl::string_view name) {
  const std::string& query = visit.request.query;
  if (!query.empty() && query != "tokens=0" && query != "tokens=1") {
    return absl::InvalidArgumentError(
        "the query of a session may be tokens=1 or tokens=0, and nothing else");
  }
  // Looked for first: a turn that ends meanwhile is in what is loaded.
  const absl::StatusOr<Running> running = FindRunning(visit, name);
  const bool is_running = running.ok() && !running->turn->ended();
  // Also one of another vocabulary: its messages are text, which whoever has changed the model may
  // still want to read.
  INLAY_ASSIGN_OR_RETURN(const Session session, store_.Load(ClientOf(visit), name));
  const bool is_own = session.vocabulary == vocabulary_;
  Json json = SessionJson(session);
  if (query == "tokens=1") AddTokens(session, is_own ? &host_.tokenizer : nullptr, &json);
  if (!is_own) json["read_only"] = true;
  json["running"] = is_running;
  return json;
}

absl::Status SessionRoutes::Probabilities(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const Session session, LoadOwn(visit, name));
  INLAY_ASSIGN_OR_RETURN(AnswerRequest request, host_.make_request(Call(), visit));
  return ReplyProbabilities({host_.tokenizer, host_.scheduler, savers_}, session,
                            std::move(request), visit);
}

absl::StatusOr<Json> SessionRoutes::Delete(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const SessionStore::Hold hold, store_.Acquire(ClientOf(visit), name));
  INLAY_RETURN_IF_ERROR(store_.Delete(hold, name));
  return Json{{"object", "session"}, {"name", std::string(name)}, {"deleted", true}};
}

absl::Status SessionRoutes::GoTo(const SessionPlace& place, Session* session) const {
  if (place.version.has_value()) return RewindToVersion(*session, *place.version);
  if (!place.position.has_value()) return absl::OkStatus();
  absl::Status error;
  const auto read = [&](const Session& cut, size_t turn, absl::Span<const int32_t> tokens) {
    absl::StatusOr<SessionAnswer> answer = prompts_.ReadAgain(cut, turn, tokens);
    if (!answer.ok()) error = answer.status();
    return answer.ok() ? *std::move(answer) : SessionAnswer();
  };
  INLAY_RETURN_IF_ERROR(RewindToPosition(*session, *place.position, read));
  return error;
}

absl::StatusOr<Json> SessionRoutes::Fork(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const ForkBody body, ParseFork(visit.request.body));
  INLAY_ASSIGN_OR_RETURN(Session session, LoadOwn(visit, name));
  INLAY_RETURN_IF_ERROR(GoTo(body.place, &session));
  if (session.root.empty()) session.root = session.name;
  session.name = body.name.empty() ? RandomName() : body.name;
  ForgetKeys(session);
  return Store(visit, std::move(session));
}

absl::StatusOr<Json> SessionRoutes::Rewind(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const RewindBody body, ParseRewind(visit.request.body));
  INLAY_ASSIGN_OR_RETURN(SessionStore::Hold hold, store_.Acquire(ClientOf(visit), name));
  INLAY_ASSIGN_OR_RETURN(Session session, LoadOwn(hold, name));
  if (body.parent.value_or(session.version) != session.version)
    return StaleParent(session, *body.parent);
  const uint64_t before = session.version;
  INLAY_RETURN_IF_ERROR(GoTo(body.place, &session));
  if (session.version != before) {
    session.updated = NowSeconds();
    INLAY_RETURN_IF_ERROR(store_.Save(hold, session));
  }
  return SessionJson(session);
}

absl::StatusOr<Json> SessionRoutes::SaveDocument(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(Session session, store_.Load(ClientOf(visit), name));
  ForgetKeys(session);
  return SessionDocument(session);
}

absl::Status SessionRoutes::CheckTokens(const Session& session) const {
  if (session.vocabulary != vocabulary_)
    return absl::InvalidArgumentError("the session was made with a model of another vocabulary");
  for (const SessionTurn& turn : session.turns) {
    if (turn.end() > host_.scheduler.context()) {
      return absl::OutOfRangeError(absl::StrCat("the session has ", turn.end(),
                                                " tokens, more than the context's ",
                                                host_.scheduler.context()));
    }
    INLAY_RETURN_IF_ERROR(
        CheckIds(turn.tokens, host_.tokenizer.size(), " of a turn of the session"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Json> SessionRoutes::LoadDocument(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json, ParseJson("the body", visit.request.body));
  INLAY_ASSIGN_OR_RETURN(Session session, ParseSession(*json));
  // Each turn counts one more, and what is stored must stay readable.
  constexpr uint64_t kMostVersion = uint64_t{1} << 53;  // as far as clients in JavaScript count
  if (session.version > kMostVersion) {
    return absl::InvalidArgumentError(
        absl::StrCat("the session's version ", session.version, " is more than ", kMostVersion));
  }
  INLAY_RETURN_IF_ERROR(CheckTokens(session));
  session.name = std::string(name);
  ForgetKeys(session);
  return Store(visit, std::move(session));
}

absl::StatusOr<SessionRoutes::Running> SessionRoutes::FindRunning(const Visit& visit,
                                                                  absl::string_view name) {
  std::vector<Entry> running;
  {
    const std::lock_guard lock(mutex_);
    running = running_;
  }
  // The newest one: of others the replies have ended, but somebody still refers to them.
  for (auto entry = running.rbegin(); entry != running.rend(); ++entry) {
    std::shared_ptr<RunningTurn> turn = entry->turn.lock();
    if (turn != nullptr && turn->IsOf(ClientOf(visit), name))
      return Running{std::move(turn), entry->answer};
  }
  return absl::NotFoundError(absl::StrCat("no turn of the session ", name, " is computed now"));
}

absl::Status SessionRoutes::Follow(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const Running running, FindRunning(visit, name));
  if (running.turn->Follow(visit.reply)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("the turn of the session ", name, " has just ended"));
}

absl::StatusOr<Json> SessionRoutes::StopTurn(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const Running running, FindRunning(visit, name));
  running.turn->Stop();
  if (running.answer != 0) host_.scheduler.Stop(running.answer);
  return Json{{"object", "session.stop"}, {"session", std::string(name)}};
}

void SessionRoutes::Turn(const Visit& visit, absl::string_view name) {
  if (const absl::Status status = TryTurn(visit, name); !status.ok()) visit.Fail(status);
}

absl::Status SessionRoutes::TryTurn(const Visit& visit, absl::string_view name) {
  INLAY_ASSIGN_OR_RETURN(const TurnBody body, ParseTurn(visit.request.body));
  std::optional<absl::StatusOr<SessionStore::Hold>> hold = store_.Acquire(ClientOf(visit), name);
  // Who asks again for a turn that is stored gets it, also while a later one is computed.
  const bool is_held = absl::IsAborted(hold->status());
  if (!is_held || body.idempotency_key.empty()) INLAY_RETURN_IF_ERROR(hold->status());
  INLAY_ASSIGN_OR_RETURN(Session session, is_held ? LoadOwn(visit, name) : LoadOwn(**hold, name));
  if (const SessionTurn* turn = session.FindKey(body.idempotency_key); turn != nullptr) {
    if (turn->request_hash != body.hash) {
      return absl::AlreadyExistsError(absl::StrCat(
          "the idempotency key was used for another request, that of version ", turn->version));
    }
    hold.reset();
    if (body.rest->value("stream", Json()) == true) {
      INLAY_ASSIGN_OR_RETURN(const auto events, prompts_.EventsOfTurn(session, *turn));
      StreamTurn(visit, session, *turn, events);
    } else {
      visit.Send(TurnJson(session, *turn));
    }
    return absl::OkStatus();
  }
  INLAY_RETURN_IF_ERROR(hold->status());
  if (body.parent != session.version) {
    hold.reset();
    SendStale(visit, StaleParent(session, body.parent), session.version);
    return absl::OkStatus();
  }
  if (host_.own_sessions_only) INLAY_RETURN_IF_ERROR(CheckFingerprints(session));
  return StartTurn(visit, body, std::move(session), **std::move(hold));
}

absl::Status SessionRoutes::StartTurn(const Visit& visit, const TurnBody& body, Session session,
                                      SessionStore::Hold hold) {
  INLAY_ASSIGN_OR_RETURN(const Call call, CallOf(body, session, host_.defaults));
  INLAY_ASSIGN_OR_RETURN(AnswerRequest request, host_.make_request(call, visit));
  SessionTurn turn;
  turn.version = session.version + 1;
  turn.parent = session.version;
  turn.idempotency_key = body.idempotency_key;
  turn.request_hash = body.hash;
  turn.service_fingerprint = host_.service_fingerprint;
  INLAY_ASSIGN_OR_RETURN(SessionAnswerReader reader,
                         body.raw ? prompts_.PrepareRaw(session, call, &turn, &request)
                                  : prompts_.PrepareMessages(session, call, &turn, &request));
  turn.given = turn.tokens.size();
  turn.options = request.options;
  std::function<void(const AnswerEnd&)> on_answer;
  if (host_.logger) on_answer = host_.logger(request, visit);
  const auto running =
      std::make_shared<RunningTurn>(RunningTurn::Parts{.session = std::move(session),
                                                       .turn = std::move(turn),
                                                       .store = &store_,
                                                       .hold = std::move(hold),
                                                       .reader = std::move(reader),
                                                       .stream = call.stream,
                                                       .visit = visit.WithoutRequest(),
                                                       .savers = &savers_,
                                                       .on_answer = std::move(on_answer)});
  {
    const std::lock_guard lock(mutex_);
    running_.push_back({.turn = running});
  }
  const absl::StatusOr<uint64_t> id = host_.scheduler.Submit(std::move(request), running);
  if (!id.ok()) {
    running->Fail(MarkTooLong(id.status()));
    return absl::OkStatus();
  }
  {
    const std::lock_guard lock(mutex_);
    for (Entry& entry : running_) {
      if (entry.turn.lock() == running) entry.answer = *id;
    }
  }
  running->Accepted();
  if (!body.background) visit.reply->OnGone([this, id = *id] { host_.scheduler.Cancel(id); });
  return absl::OkStatus();
}

}  // namespace inlay::serve
