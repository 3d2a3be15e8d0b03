#include "serve/service/answer_routes.h"

#include <limits>
#include <optional>
#include <random>
#include <set>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/format.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/xxh64.h"
#include "gemma_like/chat/marker_tokens.h"
#include "gemma_like/generation/sampler.h"
#include "io/json/parse_json.h"
#include "io/template/json_input.h"
#include "serve/api/parse_call.h"
#include "serve/api/reply.h"
#include "serve/api/token_requests.h"
#include "serve/service/answer_log.h"
#include "serve/service/answer_record.h"
#include "serve/service/answer_shapes.h"

namespace inlay::serve {
namespace {

constexpr size_t kWriters = 2;

uint64_t RandomNumber() {
  thread_local std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Short enough to be typed again, and a number that JavaScript holds exactly.
uint64_t ShortSeed(uint64_t number) { return number >> 32; }

// `seed`: where the call names none.
SamplingOptions ResolveSampling(const SamplingDefaults& defaults, const CallSampling& call,
                                uint64_t seed) {
  SamplingOptions sampling = SamplingOptions::From(defaults);
  sampling.temperature = call.temperature.value_or(sampling.temperature);
  sampling.top_k = call.top_k.value_or(sampling.top_k);
  sampling.top_p = call.top_p.value_or(sampling.top_p);
  sampling.min_p = call.min_p.value_or(sampling.min_p);
  sampling.repeat_penalty = call.repeat_penalty.value_or(sampling.repeat_penalty);
  sampling.repeat_last_n = call.repeat_last_n.value_or(sampling.repeat_last_n);
  sampling.presence_penalty = call.presence_penalty.value_or(sampling.presence_penalty);
  sampling.frequency_penalty = call.frequency_penalty.value_or(sampling.frequency_penalty);
  sampling.logit_bias = call.logit_bias;
  sampling.seed = call.seed.value_or(seed);
  return sampling;
}

}  // namespace

AnswerRoutes::AnswerRoutes(const LoadedModel& model, const absl::StatusOr<ChatRenderer>& renderer,
                           const ServiceOptions& options, const Fingerprints& fingerprints,
                           Scheduler* scheduler, AnswerGrammars& grammars)
    : model_(model),
      tokenizer_(*model.tokenizer),
      renderer_(renderer),
      options_(options),
      fingerprints_(fingerprints),
      scheduler_(scheduler),
      grammars_(grammars),
      markers_{Markers(/*tools=*/false), Markers(/*tools=*/true)},
      writers_(kWriters) {}

std::vector<int32_t> AnswerRoutes::Markers(bool tools) const {
  return renderer_.ok() ? MarkerTokens(tokenizer_, renderer_->answer_format(tools))
                        : std::vector<int32_t>();
}

absl::StatusOr<ChatInput> AnswerRoutes::InputOf(const Call& call) const {
  INLAY_RETURN_IF_ERROR(renderer_.status());
  INLAY_ASSIGN_OR_RETURN(ChatInput input,
                         ChatInput::From(*call.messages, *call.tools, *call.template_variables));
  if (options_.reproducible_at.has_value()) {
    input.options.now = *options_.reproducible_at;
    input.options.time_zone = absl::UTCTimeZone();
  }
  return input;
}

absl::StatusOr<RenderedChat> AnswerRoutes::Render(const Call& call) const {
  INLAY_ASSIGN_OR_RETURN(const ChatInput input, InputOf(call));
  absl::StatusOr<RenderedChat> chat = renderer_->Render(input);
  if (!chat.ok()) return MarkTooLong(chat.status());
  return chat;
}

absl::StatusOr<AnswerRequest> AnswerRoutes::MakeRequest(const Call& call,
                                                        const Visit& visit) const {
  AnswerRequest request;
  GenerateOptions& options = request.options;
  const std::string& id = visit.request.id;
  const uint64_t drawn = options_.reproducible_at ? Xxh64Of(id.data(), id.size()) : RandomNumber();
  options.sampling =
      ResolveSampling(model_.engine->info().sampling, call.sampling, ShortSeed(drawn));
  for (const auto& [token, bias] : options.sampling.logit_bias) {
    const size_t vocab_size = model_.engine->info().vocab_size;
    if (static_cast<size_t>(token) < vocab_size) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("logit_bias: token id ", token, " is outside 0 to ", vocab_size - 1));
  }
  options.max_tokens = call.max_tokens.value_or(std::numeric_limits<size_t>::max());
  options.stop_texts = call.stop_texts;
  options.ignore_eos = call.ignore_eos;
  if (call.logprobs) options.top_chances = call.top_logprobs;
  request.choices = call.choices;
  request.owner = visit.client.owner;
  request.prefix_owner = options_.share_prefixes ? 0 : visit.client.owner;
  // No client's identity is this text.
  request.shared_owner = options_.share_prefixes ? "all clients" : visit.client.identity;
  request.priority = visit.client.priority;
  request.deadline = visit.deadline;
  return request;
}

AnswerReply::OnAnswer AnswerRoutes::LogAnswers(const std::vector<AnswerRequest>& requests,
                                               const Visit& visit) const {
  if (options_.answer_log == nullptr) {
    if (visit.access == nullptr) return nullptr;
    return [access = visit.access](size_t, const AnswerEnd& end) { access->AddAnswer(end); };
  }
  return [this, requests, id = visit.request.id, client = visit.client.name, access = visit.access](
             size_t prompt, const AnswerEnd& end) {
    if (access != nullptr) access->AddAnswer(end);
    // What its client, the deadline or an error has cut was read up to there.
    const bool is_cut = !end.status.ok();
    if (is_cut && end.tokens.empty()) return;
    options_.answer_log->Append([&] {
      AnswerRecord record{.id = id,
                          .time = absl::FormatTime(absl::Now(), absl::UTCTimeZone()),
                          .client = client,
                          .engine_fingerprint = fingerprints_.engine,
                          .prompt = requests[prompt].prompt,
                          .options = requests[prompt].options,
                          .tokens = end.tokens,
                          .reason = is_cut ? StopReason::kCancelled : end.reason};
      record.options.sampling.choice += static_cast<uint32_t>(end.choice);
      if (const auto grammar = std::exchange(record.options.grammar, nullptr))
        record.shape = grammar->shape;
      return record;
    });
  };
}

void AnswerRoutes::SubmitAll(std::vector<AnswerRequest> requests, const Visit& visit,
                             const std::shared_ptr<AnswerReply>& answers) {
  std::vector<uint64_t> ids;
  const absl::Status status = OrOutOfMemory("this request", [&]() -> absl::Status {
    ids.reserve(requests.size());
    for (size_t i = 0; i < requests.size(); ++i) {
      const absl::StatusOr<uint64_t> id =
          scheduler_->Submit(std::move(requests[i]), answers->ListenerOf(i));
      INLAY_RETURN_IF_ERROR(MarkTooLong(id.status()));
      ids.push_back(*id);
    }
    answers->Accepted();
    visit.reply->OnGone([this, ids] {
      for (const uint64_t id : ids) scheduler_->Cancel(id);
    });
    return absl::OkStatus();
  });
  if (status.ok()) return;
  // First: the others end as cancelled, which would be the reply otherwise.
  answers->Fail(status);
  for (const uint64_t id : ids) scheduler_->Cancel(id);
}

absl::StatusOr<std::shared_ptr<const AnswerGrammar>> AnswerRoutes::GrammarFor(
    const Call& call, const AnswerFormat& format, bool in_thinking) const {
  using Grammar = std::shared_ptr<const AnswerGrammar>;
  const auto compile = [&](const std::set<std::string>& free) -> absl::StatusOr<Grammar> {
    INLAY_ASSIGN_OR_RETURN(const std::optional<AnswerShape> shape,
                           ShapeOf(call, format, in_thinking, free));
    if (!shape.has_value()) return nullptr;
    absl::StatusOr<Grammar> grammar = grammars_.Get(*shape);
    if (grammar.ok()) return grammar;
    // What is too large for a grammar is an error of the request, not a shortage that passes.
    return absl::InvalidArgumentError(
        absl::StrCat("the format of the answer: ", grammar.status().message()));
  };
  absl::StatusOr<Grammar> grammar = compile({});
  if (grammar.ok() || call.tools->is_null()) return grammar;
  // Only strict tools must be kept to their parameters.
  const absl::StatusOr<std::set<std::string>> not_kept = ToolsNotKept(call, tokenizer_);
  if (!not_kept.ok()) return absl::InvalidArgumentError(not_kept.status().message());
  grammar = compile(*not_kept);
  if (grammar.ok()) return grammar;
  // Each of them might be, but they are too large together.
  std::set<std::string> all;
  for (const auto& tool : *call.tools) all.insert(tool.at("function").at("name"));
  return compile(all);
}

absl::StatusOr<std::vector<AnswerRequest>> AnswerRoutes::MakeRequests(
    const Call& call, const Visit& visit, AnswerReply::Reading* reading) const {
  INLAY_ASSIGN_OR_RETURN(AnswerRequest request, MakeRequest(call, visit));
  std::vector<AnswerRequest> requests;
  if (visit.protocol == Protocol::kCompletions) {
    // However often it came again, it would find no place.
    const size_t most = options_.scheduler.most_running + options_.scheduler.most_waiting;
    if (call.prompts.size() > most) {
      return absl::InvalidArgumentError(
          absl::StrCat("prompt has ", call.prompts.size(), " prompts, more than the ", most,
                       " requests that this server computes or lets wait"));
    }
    INLAY_ASSIGN_OR_RETURN(request.options.grammar, GrammarFor(call, {}, /*in_thinking=*/false));
    if (call.echo && call.logprobs) {
      request.options.score_from = 1;
      request.options.end_chance = true;
    }
    EncodeOptions encoding;
    encoding.parse_special = call.parse_special;
    for (const auto& prompt : call.prompts) {
      requests.push_back(request);
      if (const auto* tokens = std::get_if<std::vector<int32_t>>(&prompt)) {
        requests.back().prompt = *tokens;
        continue;
      }
      INLAY_ASSIGN_OR_RETURN(requests.back().prompt,
                             tokenizer_.Encode(std::get<std::string>(prompt), encoding));
    }
    return requests;
  }
  INLAY_ASSIGN_OR_RETURN(RenderedChat chat, Render(call));
  INLAY_ASSIGN_OR_RETURN(request.options.grammar,
                         GrammarFor(call, chat.answer_format, chat.in_thinking));
  requests.push_back(request);
  requests[0].prompt = std::move(chat.tokens);
  requests[0].marks = {chat.generation_prompt};
  requests[0].options.shown_control = markers_[call.tools->is_null() ? 0 : 1];
  reading->format = &renderer_->answer_format(!call.tools->is_null());
  reading->options.in_thinking = chat.in_thinking;
  reading->options.calls = call.parse_calls;
  if (!call.tools->is_null()) {
    INLAY_ASSIGN_OR_RETURN(reading->options.tools, jinja::FromJson(*call.tools));
  }
  return requests;
}

absl::Status AnswerRoutes::TryAnswer(const Visit& visit) {
  if (scheduler_ == nullptr) return EmbedsOnly();
  INLAY_ASSIGN_OR_RETURN(Call call,
                         ParseCall(visit.protocol, visit.request.body, options_.parsing));
  AnswerReply::Reading reading;
  INLAY_ASSIGN_OR_RETURN(std::vector<AnswerRequest> requests, MakeRequests(call, visit, &reading));
  if (call.echo && call.logprobs) {
    for (const AnswerRequest& request : requests) call.prompt_tokens.push_back(request.prompt);
  }
  // Rendered, and large: nothing of it is needed while the answer waits and is computed.
  call.messages = call.tools = call.template_variables = {};
  call.shape.reset();
  const std::optional<absl::Time>& fixed = options_.reproducible_at;
  reading.tells_cached = !fixed.has_value();
  const ReplyHeader header{
      .id = fixed ? visit.request.id : Format("%016x%016x", RandomNumber(), RandomNumber()),
      .model = options_.model_name,
      .created = absl::ToUnixSeconds(fixed.value_or(absl::Now())),
      .system_fingerprint = fingerprints_.service,
      .seed = requests[0].options.sampling.seed};
  AnswerReply::OnAnswer on_answer = LogAnswers(requests, visit);
  const auto answers =
      std::make_shared<AnswerReply>(std::move(call), header, tokenizer_, reading, visit,
                                    requests.size(), std::move(on_answer), writers_);
  Watch(answers);
  SubmitAll(std::move(requests), visit, answers);
  return absl::OkStatus();
}

void AnswerRoutes::Answer(const Visit& visit) {
  if (const absl::Status status = TryAnswer(visit); !status.ok()) visit.Fail(status);
}

void AnswerRoutes::CountTokens(const Visit& visit) const {
  const absl::StatusOr<Call> call = ParseCountTokens(visit.request.body, options_.parsing);
  if (!call.ok()) return visit.Fail(call.status());
  const absl::StatusOr<RenderedChat> chat = Render(*call);
  if (!chat.ok()) return visit.Fail(chat.status());
  visit.SendText(CountTokensBody(chat->tokens.size()));
}

void AnswerRoutes::ApplyTemplate(const Visit& visit) const {
  const absl::StatusOr<Call> call =
      ParseCall(Protocol::kChatCompletions, visit.request.body, options_.parsing);
  if (!call.ok()) return visit.Fail(call.status());
  const absl::StatusOr<ChatInput> input = InputOf(*call);
  if (!input.ok()) return visit.Fail(input.status());
  const absl::StatusOr<jinja::Text> text = renderer_->RenderText(*input);
  if (!text.ok()) return visit.Fail(text.status());
  visit.SendText(ApplyTemplateBody(text->bytes()));
}

void AnswerRoutes::Watch(const std::shared_ptr<AnswerReply>& answers) {
  const std::lock_guard lock(mutex_);
  std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
  watched_.push_back(answers);
}

void AnswerRoutes::Ping(absl::Time before) {
  std::vector<std::weak_ptr<AnswerReply>> watched;
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(watched_, [](const auto& weak) { return weak.expired(); });
    watched = watched_;
  }
  for (const auto& weak : watched) {
    if (const std::shared_ptr<AnswerReply> answers = weak.lock()) answers->Ping(before);
  }
}

}  // namespace inlay::serve
