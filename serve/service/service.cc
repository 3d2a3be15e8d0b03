#include "serve/service/service.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/unreadable_weights.h"
#include "base/version.h"
#include "base/wait_for.h"
#include "cache/model_identity.h"
#include "gemma_like/fingerprint.h"
#include "io/gguf/gguf.h"
#include "io/json/parse_json.h"
#include "io/store/state_store_memory.h"
#include "serve/api/reply.h"
#include "serve/page/page.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/answer_log.h"
#include "serve/service/answer_routes.h"
#include "serve/service/failures.h"
#include "serve/service/fingerprints.h"
#include "serve/service/metrics.h"
#include "serve/service/process_figures.h"
#include "serve/service/recorded_reply.h"
#include "serve/service/replay.h"
#include "serve/service/service_stats.h"
#include "serve/service/session_routes.h"
#include "serve/service/token_routes.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"

namespace inlay::serve {
namespace {

constexpr size_t kWorkers = 2;
// A layer, after which a computation looks whether it is to end.
constexpr absl::Duration kTimeToCancel = absl::Seconds(5);
// Of replies and turns whose answers have ended, where draining has no more time.
constexpr absl::Duration kTimeToFinish = absl::Seconds(5);
// Of sessions that are kept in memory, in bytes, and as a share of the memory for conversations.
constexpr uint64_t kMostSessionMemory = uint64_t{1} << 30;
constexpr uint64_t kSessionShare = 4;

Protocol ProtocolOf(absl::string_view path) {
  if (path == "/v1/chat/completions") return Protocol::kChatCompletions;
  if (path == "/v1/completions") return Protocol::kCompletions;
  if (path == "/v1/responses") return Protocol::kResponses;
  if (path == "/v1/messages" || absl::StartsWith(path, "/v1/messages/")) return Protocol::kMessages;
  return Protocol::kInlay;
}

// What supervisors ask for every few seconds, which would drown the figures of all other replies.
bool IsProbe(absl::string_view path) { return path == "/health" || path == "/metrics"; }

uint64_t SessionMemory(const ServiceOptions& options) {
  return std::min<uint64_t>(kMostSessionMemory, options.scheduler.memory / kSessionShare);
}

// Of the longest conversation, or of the longest text to embed.
size_t ContextOf(const LoadedModel& model, const Scheduler* scheduler) {
  return scheduler == nullptr ? model.engine->info().context_length : scheduler->context();
}

class ModelService final : public Service {
 public:
  ModelService(const LoadedModel& model, absl::StatusOr<ChatRenderer> renderer, const ApiKeys& keys,
               ServiceOptions options, Fingerprints fingerprints,
               std::shared_ptr<Failures> failures, std::unique_ptr<Scheduler> scheduler);
  ~ModelService() override;

  std::optional<Refusal> Admit(const HttpRequest& request, bool has_body) const override;
  void OnRefusal(absl::string_view id, absl::string_view path, int status,
                 absl::string_view message) noexcept override {
    failures_->TellRefusal(status, message);
    if (IsProbe(path)) return;
    replies_->Add(status);
    LogRefusal(id, path, status);
  }
  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  void Drain(absl::Duration most) override;
  void CountConnections(std::function<size_t()> count) override {
    const std::lock_guard lock(mutex_);
    connections_ = std::move(count);
  }
  const std::string& service_fingerprint() const override { return fingerprints_.service; }
  absl::Status weights() const override { return failures_->unreadable_weights(); }
  size_t context() const override { return ContextOf(model_, scheduler_.get()); }

 private:
  using Run = void (ModelService::*)(const Visit& visit);
  struct RouteTraits {
    bool open = false;   // without a key
    bool quick = false;  // on the network's thread
    bool below = false;  // the paths below this one, too
    bool waits = false;  // among those of --queue, as answers do in the scheduler
  };
  struct Route {
    absl::string_view method, path;
    Run run;
    RouteTraits traits = {};
  };
  static absl::Span<const Route> Routes();
  // The route of a request, null where there is none; `allowed` are the methods that its path
  // takes.
  static const Route* FindRoute(const HttpRequest& request,
                                std::vector<absl::string_view>* allowed);
  // Whether it needs no key.
  bool IsOpen(const Route& route) const {
    return route.traits.open || (options_.open_metrics && route.run == &ModelService::Metrics);
  }
  bool IsForPage(const HttpRequest& request) const {
    return options_.page && request.method == "GET" && IsPagePath(request.path);
  }
  // Unauthenticated for a request without a key that is known.
  absl::StatusOr<ApiClient> ClientOf(const HttpRequest& request) const;

  void Health(const Visit& visit);
  void Metrics(const Visit& visit);
  void Models(const Visit& visit);
  void Answer(const Visit& visit) { answers_.Answer(visit); }
  void CountTokens(const Visit& visit) { answers_.CountTokens(visit); }
  void ApplyTemplate(const Visit& visit) { answers_.ApplyTemplate(visit); }
  void Tokenize(const Visit& visit) { ReplyTokens(tokenizer_, visit); }
  void Detokenize(const Visit& visit) { ReplyText(tokenizer_, visit); }
  void Embeddings(const Visit& visit) {
    ReplyEmbeddings(model_, options_.model_name, drained_, embeddings_, visit);
  }
  void Replay(const Visit& visit);
  void Sessions(const Visit& visit);

  std::unique_ptr<SessionRoutes> MakeSessions(Scheduler* scheduler);
  // A place among the requests that a worker computes or that wait for one, given back with it.
  absl::StatusOr<std::shared_ptr<void>> TakePlace();
  Json ModelJson(bool of_anthropic) const;
  void PingAll();
  // Notices that the model's file has changed before an answer fails for it.
  void CheckModel();
  void LogRefusal(absl::string_view id, absl::string_view path, int status) const noexcept;

  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
  const absl::StatusOr<ChatRenderer> renderer_;
  const ApiKeys& keys_;
  const ServiceOptions options_;
  const Fingerprints fingerprints_;
  const std::shared_ptr<Failures> failures_;
  const absl::Time process_start_;
  const int64_t started_ = absl::ToUnixSeconds(absl::Now());
  std::atomic<bool> draining_ = false;
  std::atomic<bool> drained_ = false;  // what is computed has to end
  EmbeddingCounts embeddings_;
  const std::shared_ptr<ReplyCounts> replies_ = std::make_shared<ReplyCounts>();
  std::condition_variable stopped_;
  std::mutex mutex_;  // guards the next two members
  bool stop_ = false;
  std::function<size_t()> connections_;
  AnswerGrammars grammars_;
  const std::shared_ptr<MemoryStore> session_memory_;  // null where sessions are kept elsewhere
  // The scheduler's end is told to the answers and turns of these.
  AnswerRoutes answers_;
  const std::unique_ptr<SessionRoutes> sessions_;
  const std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Workers> workers_;
  std::thread pings_;
};

ModelService::ModelService(const LoadedModel& model, absl::StatusOr<ChatRenderer> renderer,
                           const ApiKeys& keys, ServiceOptions options, Fingerprints fingerprints,
                           std::shared_ptr<Failures> failures, std::unique_ptr<Scheduler> scheduler)
    : model_(model),
      tokenizer_(*model.tokenizer),
      renderer_(std::move(renderer)),
      keys_(keys),
      options_(std::move(options)),
      fingerprints_(std::move(fingerprints)),
      failures_(std::move(failures)),
      process_start_(ProcessStart().value_or(absl::Now())),
      grammars_(*model_.tokenizer),
      session_memory_(options_.sessions != nullptr
                          ? nullptr
                          : std::make_shared<MemoryStore>(SessionMemory(options_))),
      answers_(model_, renderer_, options_, fingerprints_, scheduler.get(), grammars_),
      sessions_(MakeSessions(scheduler.get())),
      scheduler_(std::move(scheduler)),
      workers_(std::make_unique<Workers>(kWorkers)),
      pings_([this] { PingAll(); }) {}

ModelService::~ModelService() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_one();
  pings_.join();
  drained_ = true;
  workers_ = nullptr;
  if (sessions_ != nullptr) sessions_->Stop();
}

absl::Span<const ModelService::Route> ModelService::Routes() {
  static const Route kRoutes[] = {
      {"GET", "/health", &ModelService::Health, {.open = true, .quick = true}},
      {"GET", "/metrics", &ModelService::Metrics, {.quick = true}},
      {"GET", "/v1/models", &ModelService::Models, {.quick = true, .below = true}},
      {"POST", "/v1/chat/completions", &ModelService::Answer},
      {"POST", "/v1/completions", &ModelService::Answer},
      {"POST", "/v1/responses", &ModelService::Answer},
      {"POST", "/v1/messages", &ModelService::Answer},
      {"POST", "/v1/messages/count_tokens", &ModelService::CountTokens},
      {"POST", "/apply-template", &ModelService::ApplyTemplate},
      {"POST", "/tokenize", &ModelService::Tokenize},
      {"POST", "/detokenize", &ModelService::Detokenize},
      {"POST", "/v1/embeddings", &ModelService::Embeddings, {.waits = true}},
      {"POST", "/v1/replay", &ModelService::Replay},
      {"GET", "/v1/sessions", &ModelService::Sessions, {.quick = true, .below = true}},
      {"POST", "/v1/sessions", &ModelService::Sessions, {.quick = true, .below = true}},
      {"DELETE", "/v1/sessions", &ModelService::Sessions, {.quick = true, .below = true}},
  };
  return kRoutes;
}

const ModelService::Route* ModelService::FindRoute(const HttpRequest& request,
                                                   std::vector<absl::string_view>* allowed) {
  const std::string& path = request.path;
  const Route* route = nullptr;
  for (const Route& candidate : Routes()) {
    const bool below =
        candidate.traits.below && absl::StartsWith(path, absl::StrCat(candidate.path, "/"));
    if (candidate.path != path && !below) continue;
    allowed->push_back(candidate.method);
    if (candidate.method == request.method) route = &candidate;
  }
  return route;
}

absl::StatusOr<ApiClient> ModelService::ClientOf(const HttpRequest& request) const {
  constexpr absl::string_view kBearer = "Bearer ";  // in any case, as HTTP has it
  absl::string_view key = request.Header("authorization");
  if (absl::StartsWithIgnoreCase(key, kBearer)) {
    key.remove_prefix(kBearer.size());
  } else {
    key = request.Header("x-api-key");
  }
  if (std::optional<ApiClient> client = keys_.Find(key)) return *std::move(client);
  return absl::UnauthenticatedError(key.empty() ? "this server needs an API key"
                                                : "this API key is not known");
}

std::optional<Refusal> ModelService::Admit(const HttpRequest& request, bool has_body) const {
  std::vector<absl::string_view> allowed;
  const Route* const route = FindRoute(request, &allowed);
  if (!has_body && (IsForPage(request) || (route != nullptr && IsOpen(*route))))
    return std::nullopt;
  const absl::Status status = ClientOf(request).status();
  if (!status.ok()) return Refusal{HttpStatusOf(status), std::string(status.message())};
  if (has_body && allowed.empty()) return Refusal{404, absl::StrCat("there is no ", request.path)};
  return std::nullopt;
}

void ModelService::LogRefusal(absl::string_view id, absl::string_view path,
                              int status) const noexcept {
  if (options_.access_log == nullptr) return;
  options_.access_log->Append([&]() -> AccessRecord {
    return {
        .arrived = absl::Now(), .id = std::string(id), .path = std::string(path), .status = status};
  });
}

void ModelService::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  if (IsForPage(request)) return ReplyPage(request, *reply);
  std::shared_ptr<Access> access;
  if (!IsProbe(request.path)) {
    access = Access::Begin(options_.access_log, request);
    reply = std::make_shared<RecordedReply>(std::move(reply), replies_, access);
  }
  auto visit = std::make_shared<Visit>(Visit{.request = std::move(request),
                                             .reply = std::move(reply),
                                             .client = {},
                                             .protocol = Protocol::kInlay,
                                             .deadline = SteadyNow() + options_.deadline,
                                             .failures = failures_,
                                             .access = access});
  const std::string& path = visit->request.path;
  visit->protocol = ProtocolOf(path);
  std::vector<absl::string_view> allowed;
  const Route* const route = FindRoute(visit->request, &allowed);
  if (route == nullptr || !IsOpen(*route)) {
    // Also where Admit has found it: keys may have been read again since.
    absl::StatusOr<ApiClient> client = ClientOf(visit->request);
    if (!client.ok()) return visit->Fail(client.status());
    visit->client = *std::move(client);
    if (access != nullptr) access->SetClient(visit->client.name);
  }
  if (route == nullptr) {
    if (allowed.empty())
      return visit->Fail(absl::NotFoundError(absl::StrCat("there is no ", path)));
    const std::string methods = absl::StrJoin(allowed, ", ");
    const auto status = absl::InvalidArgumentError(
        absl::StrCat(path, " takes ", methods, ", not ", visit->request.method));
    return visit->reply->Send(405, "application/json", ErrorBody(visit->protocol, status),
                              {{"Allow", methods}});
  }
  if (route->traits.quick) return (this->*route->run)(*visit);
  std::shared_ptr<void> place;
  if (route->traits.waits) {
    absl::StatusOr<std::shared_ptr<void>> taken = TakePlace();
    if (!taken.ok()) return visit->Fail(taken.status());
    place = *std::move(taken);
  }
  workers_->Add([this, visit, place = std::move(place), run = route->run] {
    const absl::Status status = OrOutOfMemory("this request", [&] {
      (this->*run)(*visit);
      return absl::OkStatus();
    });
    if (!status.ok()) visit->Fail(status);
  });
}

absl::StatusOr<std::shared_ptr<void>> ModelService::TakePlace() {
  if (draining_) return absl::UnavailableError("the server is shutting down");
  const size_t before = embeddings_.taken_places++;
  std::shared_ptr<void> place(nullptr, [this](void*) { --embeddings_.taken_places; });
  if (before < options_.scheduler.most_waiting + kWorkers) {
    ++embeddings_.requests;
    return place;
  }
  ++embeddings_.refused;
  return absl::ResourceExhaustedError(
      absl::StrCat("too many requests wait already: ", before - kWorkers));
}

void ModelService::Health(const Visit& visit) {
  if (draining_) return visit.Fail(absl::UnavailableError("the server is shutting down"));
  if (const absl::Status weights = failures_->weights(); !weights.ok()) return visit.Fail(weights);
  visit.Send({{"status", "ok"}});
}

void ModelService::Metrics(const Visit& visit) {
  std::function<size_t()> connections;
  {
    const std::lock_guard lock(mutex_);
    connections = connections_;
  }
  ServiceStats stats{.connections = connections ? connections() : 0, .replies = replies_.get()};
  if (scheduler_ == nullptr) {
    stats.embeddings = &embeddings_;
  } else {
    stats.scheduler = scheduler_->stats();
  }
  if (const AnswerLog* const log = options_.answer_log.get(); log != nullptr)
    stats.answer_log = {.lost = log->lost(), .waiting_bytes = log->waiting_bytes()};
  if (options_.access_log != nullptr) stats.lost_access_lines = options_.access_log->lost();
  stats.server = {.version = INLAY_VERSION,
                  .model = options_.model_name,
                  .fingerprint = fingerprints_.service,
                  .started = absl::ToDoubleSeconds(process_start_ - absl::UnixEpoch()),
                  .resident_bytes = ResidentMemory(),
                  .draining = draining_,
                  .model_is_readable = failures_->weights().ok(),
                  .failed_key_reloads = keys_.failed_reloads()};
  if (sessions_ != nullptr) {
    const SessionStore& store = sessions_->store();
    stats.sessions = {.up = store.up(), .count = store.KnownCount(), .in_use = store.held()};
    if (session_memory_ != nullptr)
      stats.sessions->memory = {.bytes = session_memory_->bytes(),
                                .most_bytes = SessionMemory(options_)};
  }
  visit.reply->Send(200, "text/plain; version=0.0.4", MetricsText(stats));
}

Json ModelService::ModelJson(bool of_anthropic) const {
  const EngineInfo& info = model_.engine->info();
  Json model = {{"id", options_.model_name},
                {"object", "model"},
                {"created", started_},
                {"owned_by", "inlay"},
                {"meta",
                 {{"config", std::string(info.config_name)},
                  {"context_length", context()},
                  {"trained_context_length", info.context_length},
                  {"vocab_size", info.vocab_size},
                  {"system_fingerprint", fingerprints_.service}}}};
  if (of_anthropic) {
    const absl::Time started = absl::FromUnixSeconds(started_);
    model.update(
        {{"type", "model"},
         {"display_name", options_.model_name},
         {"created_at", absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", started, absl::UTCTimeZone())}});
  }
  return model;
}

void ModelService::Models(const Visit& visit) {
  absl::string_view name = visit.request.path;
  // The path is OpenAI's, too: its own clients get what they read besides.
  const bool of_anthropic = !visit.request.Header("anthropic-version").empty();
  // Also with a slash at the end, as some clients put addresses together.
  if (!absl::ConsumePrefix(&name, "/v1/models/") || name.empty()) {
    Json list = {{"object", "list"}, {"data", Json::array({ModelJson(of_anthropic)})}};
    if (of_anthropic) {
      list.update({{"has_more", false},
                   {"first_id", options_.model_name},
                   {"last_id", options_.model_name}});
    }
    return visit.Send(std::move(list));
  }
  if (name == options_.model_name) return visit.Send(ModelJson(of_anthropic));
  visit.Fail(absl::NotFoundError(
      absl::StrCat("there is no model ", name, "; this server has ", options_.model_name)));
}

void ModelService::Replay(const Visit& visit) {
  if (scheduler_ == nullptr) return visit.Fail(EmbedsOnly());
  ReplayAnswer(*scheduler_, grammars_, fingerprints_.engine, visit);
}

std::unique_ptr<SessionRoutes> ModelService::MakeSessions(Scheduler* scheduler) {
  if (scheduler == nullptr || !renderer_.ok()) return nullptr;
  return std::make_unique<SessionRoutes>(
      SessionHost{
          .tokenizer = tokenizer_,
          .renderer = *renderer_,
          .scheduler = *scheduler,
          .service_fingerprint = fingerprints_.service,
          .own_sessions_only = options_.own_sessions_only,
          .markers = answers_.markers(),
          .defaults = options_.parsing.defaults,
          .make_request = [this](const Call& call,
                                 const Visit& visit) { return answers_.MakeRequest(call, visit); },
          .logger = [this](const AnswerRequest& request,
                           const Visit& visit) -> std::function<void(const AnswerEnd&)> {
            AnswerReply::OnAnswer log = answers_.LogAnswers({request}, visit);
            if (log == nullptr) return nullptr;
            return [log](const AnswerEnd& end) { log(0, end); };
          },
          .note = options_.note},
      session_memory_ != nullptr ? session_memory_ : options_.sessions,
      SessionLimits{.ttl = options_.session_ttl});
}

void ModelService::Sessions(const Visit& visit) {
  if (scheduler_ == nullptr) return visit.Fail(EmbedsOnly());
  if (sessions_ == nullptr) return visit.Fail(renderer_.status());
  sessions_->Handle(visit);
}

void ModelService::PingAll() {
  while (true) {
    {
      std::unique_lock lock(mutex_);
      if (WaitFor(stopped_, lock, options_.ping / 3, [this] { return stop_; })) return;
    }
    const absl::Time before = SteadyNow() - options_.ping;
    // Without memory the next time will do.
    (void)OrOutOfMemory("pings", [&] {
      CheckModel();
      if (sessions_ != nullptr) sessions_->Ping(before);
      answers_.Ping(before);
      return absl::OkStatus();
    });
  }
}

void ModelService::CheckModel() {
  if (model_.file != nullptr)
    (void)failures_->ForClient(MarkUnreadableWeights(model_.file->CheckWhole()));
}

void ModelService::Drain(absl::Duration most) {
  draining_ = true;
  const absl::Time end = SteadyNow() + most;
  if (scheduler_ != nullptr) scheduler_->Drain(most);
  workers_->Finish(end - SteadyNow());
  drained_ = true;
  if (scheduler_ == nullptr) workers_->Finish(kTimeToCancel);
  // They may still wait to be sent and to be stored, and would be lost with the service.
  answers_.Finish(std::max(end - SteadyNow(), kTimeToFinish));
  if (sessions_ != nullptr) sessions_->Finish(std::max(end - SteadyNow(), kTimeToFinish));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Create(const LoadedModel& model,
                                                         absl::StatusOr<ChatRenderer> renderer,
                                                         const ApiKeys& keys,
                                                         ServiceOptions options) {
  return OrOutOfMemory("the server", [&]() -> absl::StatusOr<std::unique_ptr<Service>> {
    INLAY_ASSIGN_OR_RETURN(std::string fingerprint,
                           MakeFingerprint(*model.engine, options.scheduler.kv_type));
    const auto failures = std::make_shared<Failures>(options.note);
    options.scheduler.on_error = [failures](const absl::Status& error) {
      return failures->ForClient(error);
    };
    std::unique_ptr<Scheduler> scheduler;  // none for a model that embeds texts
    if (model.engine->info().embedding_dim == 0) {
      if (options.shared_prefixes.has_value()) {
        INLAY_ASSIGN_OR_RETURN(ModelIdentity identity, model.engine->Identity());
        options.shared_prefixes->ranks = model.engine->info().ranks;
        INLAY_ASSIGN_OR_RETURN(
            options.scheduler.shared_prefixes,
            SharedPrefixes::Create(fingerprint, std::move(identity), *options.shared_prefixes));
      }
      INLAY_ASSIGN_OR_RETURN(scheduler,
                             Scheduler::Create(*model.engine, *model.tokenizer, options.scheduler));
    }
    const size_t context = ContextOf(model, scheduler.get());
    Fingerprints fingerprints =
        MakeFingerprints(std::move(fingerprint), model, renderer, options, context);
    return std::make_unique<ModelService>(model, std::move(renderer), keys, std::move(options),
                                          std::move(fingerprints), failures, std::move(scheduler));
  });
}

std::string HttpErrorBody(absl::string_view path, int status, absl::string_view message) {
  const absl::StatusCode code = status == 401   ? absl::StatusCode::kUnauthenticated
                                : status == 403 ? absl::StatusCode::kPermissionDenied
                                : status == 404 ? absl::StatusCode::kNotFound
                                : status == 503 ? absl::StatusCode::kUnavailable
                                : status < 500  ? absl::StatusCode::kInvalidArgument
                                                : absl::StatusCode::kInternal;
  return ErrorBody(ProtocolOf(path), absl::Status(code, message));
}

}  // namespace inlay::serve
