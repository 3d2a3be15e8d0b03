#include "serve/service/service.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/wait_for.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/generation/sampler.h"
#include "gemma_like/parse_json.h"
#include "io/template/json_input.h"
#include "serve/api/parse_call.h"
#include "serve/api/reply.h"
#include "serve/api/token_requests.h"
#include "serve/scheduler/scheduler.h"
#include "serve/service/answer_log.h"
#include "serve/service/answer_reply.h"
#include "serve/service/fingerprint.h"
#include "serve/service/metrics.h"
#include "serve/service/replay.h"
#include "serve/service/session_routes.h"
#include "serve/service/token_routes.h"
#include "serve/service/visit.h"
#include "serve/service/workers.h"

namespace inlay::serve {
namespace {

constexpr size_t kWorkers = 2;
constexpr absl::string_view kEmbedsOnly = "this model embeds texts and generates none";
// Of sessions that are kept in memory.
constexpr uint64_t kSessionMemory = uint64_t{1} << 30;

Protocol ProtocolOf(absl::string_view path) {
  if (path == "/v1/chat/completions") return Protocol::kChatCompletions;
  if (path == "/v1/completions") return Protocol::kCompletions;
  if (path == "/v1/responses") return Protocol::kResponses;
  if (path == "/v1/messages" || absl::StartsWith(path, "/v1/messages/")) return Protocol::kMessages;
  return Protocol::kInlay;
}

uint64_t RandomNumber() {
  thread_local std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Short enough to be typed again, and a number that JavaScript holds exactly.
uint64_t RandomSeed() { return RandomNumber() >> 32; }

SamplingOptions ResolveSampling(const SamplingDefaults& defaults, const CallSampling& call) {
  SamplingOptions sampling = SamplingOptions::From(defaults);
  sampling.temperature = call.temperature.value_or(sampling.temperature);
  sampling.top_k = call.top_k.value_or(sampling.top_k);
  sampling.top_p = call.top_p.value_or(sampling.top_p);
  sampling.min_p = call.min_p.value_or(sampling.min_p);
  sampling.repeat_penalty = call.repeat_penalty.value_or(sampling.repeat_penalty);
  sampling.presence_penalty = call.presence_penalty.value_or(0.0f);
  sampling.frequency_penalty = call.frequency_penalty.value_or(0.0f);
  sampling.logit_bias = call.logit_bias;
  sampling.seed = call.seed.has_value() ? *call.seed : RandomSeed();
  return sampling;
}

class ModelService final : public Service {
 public:
  ModelService(const LoadedModel& model, absl::StatusOr<ChatRenderer> renderer, const ApiKeys& keys,
               ServiceOptions options, std::string fingerprint,
               std::unique_ptr<Scheduler> scheduler);
  ~ModelService() override;

  void Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) override;
  void Drain(absl::Duration most) override;
  void CountConnections(std::function<size_t()> count) override {
    const std::lock_guard lock(mutex_);
    connections_ = std::move(count);
  }
  const std::string& fingerprint() const override { return fingerprint_; }

 private:
  using Run = void (ModelService::*)(const Visit& visit);
  struct Route {
    absl::string_view method, path;
    Run run;
    bool open = false;   // without a key
    bool quick = false;  // on the network's thread
    bool below = false;  // the paths below this one, too
  };
  static absl::Span<const Route> Routes();

  void Health(const Visit& visit);
  void Metrics(const Visit& visit);
  void Models(const Visit& visit);
  void Answer(const Visit& visit);
  void CountTokens(const Visit& visit);
  void ApplyTemplate(const Visit& visit);
  void Tokenize(const Visit& visit) { ReplyTokens(tokenizer_, visit); }
  void Detokenize(const Visit& visit) { ReplyText(tokenizer_, visit); }
  void Embeddings(const Visit& visit) { ReplyEmbeddings(model_, options_.model_name, visit); }
  void Replay(const Visit& visit);
  void Sessions(const Visit& visit);

  std::unique_ptr<SessionRoutes> MakeSessions(Scheduler* scheduler);
  Json ModelJson() const;
  std::vector<int32_t> Markers(bool tools) const {
    return renderer_.ok() ? MarkerTokens(tokenizer_, renderer_->answer_format(tools))
                          : std::vector<int32_t>();
  }
  absl::StatusOr<RenderedChat> Render(const Call& call) const;
  absl::Status TryAnswer(const Visit& visit);
  absl::StatusOr<AnswerRequest> MakeRequest(const Call& call, const Visit& visit) const;
  absl::Status SubmitAll(std::vector<AnswerRequest> requests, const Visit& visit,
                         const std::shared_ptr<AnswerReply>& answers);
  AnswerReply::OnAnswer LogAnswers(const std::vector<AnswerRequest>& requests, const Visit& visit);
  void Watch(const std::shared_ptr<AnswerReply>& answers);
  void PingAll();

  const LoadedModel& model_;
  const Tokenizer& tokenizer_;
  const absl::StatusOr<ChatRenderer> renderer_;
  const ApiKeys& keys_;
  const ServiceOptions options_;
  const std::string fingerprint_;
  const int64_t started_ = absl::ToUnixSeconds(absl::Now());
  const std::array<std::vector<int32_t>, 2> markers_;  // of answers without and with tools
  std::atomic<bool> draining_ = false;
  std::condition_variable stopped_;
  std::mutex mutex_;  // guards the next three members
  bool stop_ = false;
  std::function<size_t()> connections_;
  std::vector<std::weak_ptr<AnswerReply>> watched_;
  const std::unique_ptr<SessionRoutes> sessions_;  // its turns are told of the scheduler's end
  const std::unique_ptr<Scheduler> scheduler_;
  std::unique_ptr<Workers> workers_;
  std::thread pings_;
};

ModelService::ModelService(const LoadedModel& model, absl::StatusOr<ChatRenderer> renderer,
                           const ApiKeys& keys, ServiceOptions options, std::string fingerprint,
                           std::unique_ptr<Scheduler> scheduler)
    : model_(model),
      tokenizer_(*model.tokenizer),
      renderer_(std::move(renderer)),
      keys_(keys),
      options_(std::move(options)),
      fingerprint_(std::move(fingerprint)),
      markers_{Markers(/*tools=*/false), Markers(/*tools=*/true)},
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
  workers_ = nullptr;
  if (sessions_ != nullptr) sessions_->Stop();
}

absl::Span<const ModelService::Route> ModelService::Routes() {
  static const Route kRoutes[] = {
      {"GET", "/health", &ModelService::Health, /*open=*/true, /*quick=*/true},
      {"GET", "/metrics", &ModelService::Metrics, /*open=*/false, /*quick=*/true},
      {"GET", "/v1/models", &ModelService::Models, /*open=*/false, /*quick=*/true, /*below=*/true},
      {"POST", "/v1/chat/completions", &ModelService::Answer},
      {"POST", "/v1/completions", &ModelService::Answer},
      {"POST", "/v1/responses", &ModelService::Answer},
      {"POST", "/v1/messages", &ModelService::Answer},
      {"POST", "/v1/messages/count_tokens", &ModelService::CountTokens},
      {"POST", "/apply-template", &ModelService::ApplyTemplate},
      {"POST", "/tokenize", &ModelService::Tokenize},
      {"POST", "/detokenize", &ModelService::Detokenize},
      {"POST", "/v1/embeddings", &ModelService::Embeddings},
      {"POST", "/v1/replay", &ModelService::Replay},
      {"GET", "/v1/sessions", &ModelService::Sessions, false, /*quick=*/true, /*below=*/true},
      {"POST", "/v1/sessions", &ModelService::Sessions, false, /*quick=*/true, /*below=*/true},
      {"DELETE", "/v1/sessions", &ModelService::Sessions, false, /*quick=*/true, /*below=*/true},
  };
  return kRoutes;
}

void ModelService::Handle(HttpRequest request, std::shared_ptr<HttpReply> reply) {
  auto visit = std::make_shared<Visit>(Visit{.request = std::move(request),
                                             .reply = std::move(reply),
                                             .client = {},
                                             .protocol = Protocol::kInlay});
  const std::string& path = visit->request.path;
  visit->protocol = ProtocolOf(path);
  const Route* route = nullptr;
  bool known = false;
  for (const Route& candidate : Routes()) {
    const bool below = candidate.below && absl::StartsWith(path, absl::StrCat(candidate.path, "/"));
    if (candidate.path != path && !below) continue;
    known = true;
    if (candidate.method == visit->request.method) route = &candidate;
  }
  if (route == nullptr || !route->open) {
    absl::string_view key = visit->request.Header("authorization");
    if (!absl::ConsumePrefix(&key, "Bearer ")) key = visit->request.Header("x-api-key");
    const std::optional<ApiClient> client = keys_.Find(key);
    if (!client.has_value()) {
      return visit->Fail(absl::UnauthenticatedError(key.empty() ? "this server needs an API key"
                                                                : "this API key is not known"));
    }
    visit->client = *client;
  }
  if (route == nullptr) {
    return visit->Fail(
        known ? absl::NotFoundError(absl::StrCat(path, " does not take ", visit->request.method))
              : absl::NotFoundError(absl::StrCat("there is no ", path)));
  }
  if (route->quick) return (this->*route->run)(*visit);
  workers_->Add([this, visit, run = route->run] {
    const absl::Status status = OrOutOfMemory("this request", [&] {
      (this->*run)(*visit);
      return absl::OkStatus();
    });
    if (!status.ok()) visit->Fail(status);
  });
}

void ModelService::Health(const Visit& visit) {
  if (draining_) return visit.Fail(absl::UnavailableError("the server is shutting down"));
  visit.Send({{"status", "ok"}});
}

void ModelService::Metrics(const Visit& visit) {
  std::function<size_t()> connections;
  {
    const std::lock_guard lock(mutex_);
    connections = connections_;
  }
  visit.reply->Send(200, "text/plain; version=0.0.4",
                    MetricsText(scheduler_ == nullptr ? SchedulerStats() : scheduler_->stats(),
                                connections ? connections() : 0));
}

Json ModelService::ModelJson() const {
  const EngineInfo& info = model_.engine->info();
  return {{"id", options_.model_name},
          {"object", "model"},
          {"created", started_},
          {"owned_by", "inlay"},
          {"meta",
           {{"config", std::string(info.config_name)},
            {"context_length", scheduler_ == nullptr ? info.context_length : scheduler_->context()},
            {"trained_context_length", info.context_length},
            {"vocab_size", info.vocab_size},
            {"system_fingerprint", fingerprint_}}}};
}

void ModelService::Models(const Visit& visit) {
  absl::string_view name = visit.request.path;
  if (!absl::ConsumePrefix(&name, "/v1/models/")) {
    return visit.Send({{"object", "list"}, {"data", Json::array({ModelJson()})}});
  }
  if (name == options_.model_name) return visit.Send(ModelJson());
  visit.Fail(absl::NotFoundError(
      absl::StrCat("there is no model ", name, "; this server has ", options_.model_name)));
}

absl::StatusOr<RenderedChat> ModelService::Render(const Call& call) const {
  INLAY_RETURN_IF_ERROR(renderer_.status());
  INLAY_ASSIGN_OR_RETURN(
      const ChatInput input,
      ChatInput::Parse(DumpJson(call.messages), call.tools.is_null() ? "" : DumpJson(call.tools),
                       DumpJson(call.template_variables)));
  return renderer_->Render(input);
}

absl::StatusOr<AnswerRequest> ModelService::MakeRequest(const Call& call,
                                                        const Visit& visit) const {
  AnswerRequest request;
  GenerateOptions& options = request.options;
  options.sampling = ResolveSampling(model_.engine->info().sampling, call.sampling);
  for (const auto& [token, bias] : options.sampling.logit_bias) {
    if (static_cast<size_t>(token) < model_.engine->info().vocab_size) continue;
    return absl::InvalidArgumentError(absl::StrCat("logit_bias names the token ", token,
                                                   ", outside of the vocabulary of ",
                                                   model_.engine->info().vocab_size));
  }
  options.max_tokens = call.max_tokens.value_or(std::numeric_limits<size_t>::max());
  options.stop_texts = call.stop_texts;
  options.ignore_eos = call.ignore_eos;
  if (call.logprobs) options.top_chances = call.top_logprobs;
  request.choices = call.choices;
  request.owner = options_.share_prefixes ? 0 : visit.client.owner;
  request.priority = visit.client.priority;
  request.deadline = absl::Now() + options_.deadline;
  return request;
}

AnswerReply::OnAnswer ModelService::LogAnswers(const std::vector<AnswerRequest>& requests,
                                               const Visit& visit) {
  if (options_.answer_log == nullptr) return nullptr;
  return [this, requests, id = visit.request.id, client = visit.client.name](size_t prompt,
                                                                             const AnswerEnd& end) {
    AnswerRecord record{.id = id,
                        .time = absl::FormatTime(absl::Now(), absl::UTCTimeZone()),
                        .client = client,
                        .fingerprint = fingerprint_,
                        .prompt = requests[prompt].prompt,
                        .options = requests[prompt].options,
                        .tokens = end.tokens,
                        .reason = end.reason};
    record.options.sampling.choice += static_cast<uint32_t>(end.choice);
    // An answer is not withheld because it could not be written down.
    (void)options_.answer_log->Append(record);
  };
}

absl::Status ModelService::SubmitAll(std::vector<AnswerRequest> requests, const Visit& visit,
                                     const std::shared_ptr<AnswerReply>& answers) {
  std::vector<uint64_t> ids;
  absl::Status status;
  for (size_t i = 0; i < requests.size() && status.ok(); ++i) {
    const absl::StatusOr<uint64_t> id =
        scheduler_->Submit(std::move(requests[i]), answers->ListenerOf(i));
    status = id.status();
    if (id.ok()) ids.push_back(*id);
  }
  if (!status.ok()) {
    for (const uint64_t id : ids) scheduler_->Cancel(id);
    return status;
  }
  answers->Accepted();
  visit.reply->OnGone([this, ids] {
    for (const uint64_t id : ids) scheduler_->Cancel(id);
  });
  return absl::OkStatus();
}

absl::Status ModelService::TryAnswer(const Visit& visit) {
  if (scheduler_ == nullptr) return absl::UnimplementedError(kEmbedsOnly);
  INLAY_ASSIGN_OR_RETURN(Call call, ParseCall(visit.protocol, visit.request.body,
                                              {.drop_billing_line = options_.drop_billing_line}));
  INLAY_ASSIGN_OR_RETURN(const AnswerRequest request, MakeRequest(call, visit));
  std::vector<AnswerRequest> requests;
  AnswerReply::Reading reading;
  if (visit.protocol == Protocol::kCompletions) {
    for (const auto& prompt : call.prompts) {
      requests.push_back(request);
      if (const auto* tokens = std::get_if<std::vector<int32_t>>(&prompt)) {
        requests.back().prompt = *tokens;
        continue;
      }
      INLAY_ASSIGN_OR_RETURN(requests.back().prompt,
                             tokenizer_.Encode(std::get<std::string>(prompt)));
    }
  } else {
    INLAY_ASSIGN_OR_RETURN(RenderedChat chat, Render(call));
    requests.push_back(request);
    requests[0].prompt = std::move(chat.tokens);
    requests[0].marks = {chat.generation_prompt};
    requests[0].options.shown_control = markers_[call.tools.is_null() ? 0 : 1];
    reading.format = &renderer_->answer_format(!call.tools.is_null());
    reading.options.in_thinking = chat.in_thinking;
    reading.options.calls = call.parse_calls;
    if (!call.tools.is_null()) {
      INLAY_ASSIGN_OR_RETURN(reading.options.tools, jinja::ParseJson(DumpJson(call.tools)));
    }
  }
  const ReplyHeader header{.id = absl::StrFormat("%016x%016x", RandomNumber(), RandomNumber()),
                           .model = options_.model_name,
                           .created = absl::ToUnixSeconds(absl::Now()),
                           .system_fingerprint = fingerprint_,
                           .seed = request.options.sampling.seed};
  AnswerReply::OnAnswer on_answer = LogAnswers(requests, visit);
  const auto answers =
      std::make_shared<AnswerReply>(std::move(call), header, tokenizer_, reading, visit.reply,
                                    requests.size(), std::move(on_answer));
  Watch(answers);
  if (const absl::Status status = SubmitAll(std::move(requests), visit, answers); !status.ok())
    answers->Fail(status);
  return absl::OkStatus();
}

void ModelService::Answer(const Visit& visit) {
  if (const absl::Status status = TryAnswer(visit); !status.ok()) visit.Fail(status);
}

void ModelService::CountTokens(const Visit& visit) {
  const absl::StatusOr<Call> call =
      ParseCountTokens(visit.request.body, {.drop_billing_line = options_.drop_billing_line});
  if (!call.ok()) return visit.Fail(call.status());
  const absl::StatusOr<RenderedChat> chat = Render(*call);
  if (!chat.ok()) return visit.Fail(chat.status());
  visit.SendText(CountTokensBody(chat->tokens.size()));
}

void ModelService::ApplyTemplate(const Visit& visit) {
  const absl::StatusOr<Call> call = ParseCall(Protocol::kChatCompletions, visit.request.body);
  if (!call.ok()) return visit.Fail(call.status());
  if (!renderer_.ok()) return visit.Fail(renderer_.status());
  const absl::StatusOr<ChatInput> input =
      ChatInput::Parse(DumpJson(call->messages), call->tools.is_null() ? "" : DumpJson(call->tools),
                       DumpJson(call->template_variables));
  if (!input.ok()) return visit.Fail(input.status());
  const absl::StatusOr<jinja::Text> text = renderer_->RenderText(*input);
  if (!text.ok()) return visit.Fail(text.status());
  visit.SendText(ApplyTemplateBody(text->bytes()));
}

void ModelService::Replay(const Visit& visit) {
  if (scheduler_ == nullptr) return visit.Fail(absl::UnimplementedError(kEmbedsOnly));
  ReplayAnswer(*scheduler_, fingerprint_, visit);
}

std::unique_ptr<SessionRoutes> ModelService::MakeSessions(Scheduler* scheduler) {
  if (scheduler == nullptr || !renderer_.ok()) return nullptr;
  return std::make_unique<SessionRoutes>(
      SessionHost{.tokenizer = tokenizer_,
                  .renderer = *renderer_,
                  .scheduler = *scheduler,
                  .fingerprint = fingerprint_,
                  .markers = markers_,
                  .make_request = [this](const Call& call,
                                         const Visit& visit) { return MakeRequest(call, visit); },
                  .logger = [this](const AnswerRequest& request,
                                   const Visit& visit) -> std::function<void(const AnswerEnd&)> {
                    AnswerReply::OnAnswer log = LogAnswers({request}, visit);
                    if (log == nullptr) return nullptr;
                    return [log](const AnswerEnd& end) { log(0, end); };
                  }},
      options_.sessions ? options_.sessions : std::make_shared<MemoryStore>(kSessionMemory));
}

void ModelService::Sessions(const Visit& visit) {
  if (scheduler_ == nullptr) return visit.Fail(absl::UnimplementedError(kEmbedsOnly));
  if (sessions_ == nullptr) return visit.Fail(renderer_.status());
  sessions_->Handle(visit);
}

void ModelService::Watch(const std::shared_ptr<AnswerReply>& answers) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
  watched_.push_back(answers);
}

void ModelService::PingAll() {
  while (true) {
    std::vector<std::weak_ptr<AnswerReply>> watched;
    {
      std::unique_lock lock(mutex_);
      if (WaitFor(stopped_, lock, options_.ping / 3, [this] { return stop_; })) return;
      std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
      watched = watched_;
    }
    if (sessions_ != nullptr) sessions_->Ping(absl::Now() - options_.ping);
    for (const auto& weak : watched) {
      if (const std::shared_ptr<AnswerReply> answers = weak.lock())
        answers->Ping(absl::Now() - options_.ping);
    }
  }
}

void ModelService::Drain(absl::Duration most) {
  draining_ = true;
  if (scheduler_ != nullptr) scheduler_->Drain(most);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Service>> Service::Create(const LoadedModel& model,
                                                         absl::StatusOr<ChatRenderer> renderer,
                                                         const ApiKeys& keys,
                                                         ServiceOptions options) {
  return OrOutOfMemory("the server", [&]() -> absl::StatusOr<std::unique_ptr<Service>> {
    INLAY_ASSIGN_OR_RETURN(std::string fingerprint,
                           MakeFingerprint(*model.engine, options.scheduler.kv_type));
    std::unique_ptr<Scheduler> scheduler;  // none for a model that embeds texts
    if (model.engine->info().embedding_dim == 0) {
      INLAY_ASSIGN_OR_RETURN(scheduler,
                             Scheduler::Create(*model.engine, *model.tokenizer, options.scheduler));
    }
    return std::make_unique<ModelService>(model, std::move(renderer), keys, std::move(options),
                                          std::move(fingerprint), std::move(scheduler));
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
