// inlay batch: answers the requests in a file.
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/format.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/unwinding_memory.h"
#include "cache/model_identity.h"
#include "io/json/parse_json.h"
#include "serve/batch_job/batch_job.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/kept_journals.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/result_file.h"
#include "serve/http/http_server.h"
#include "serve/service/api_keys.h"
#include "serve/service/service.h"
#include "tools/commands/commands.h"
#include "tools/flags/chat_template_flag.h"
#include "tools/flags/draft_flags.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/service_flags.h"
#include "tools/flags/shard_flag.h"
#include "tools/flags/usage_error.h"
#include "tools/flags/validators.h"
#include "tools/interrupt.h"
#include "tools/output.h"
#include "tools/progress.h"

namespace inlay {
namespace {

using serve::BatchJobOptions;
using serve::BatchJobOutcome;
using serve::JobIdentity;
using serve::RequestFile;
using serve::Service;
using serve::ServiceOptions;
using serve::Shard;

struct BatchFlags {
  ModelFlags model;
  std::string requests, out;
  ServiceFlags service;
  DraftFlags draft;
  std::string shard;
  serve::JournalMode mode;
  std::optional<int64_t> time;
};

// No answer waits for a person here: a request for many answers may have them all waiting.
constexpr size_t kNoLimit = std::numeric_limits<size_t>::max() / 2;

ServiceOptions OptionsOf(const BatchFlags& flags, const LoadedModel& model, size_t neighbours,
                         absl::Time time) {
  ServiceOptions options = MakeServiceOptions(flags.service, flags.model, model, neighbours);
  options.scheduler.most_waiting = kNoLimit;
  options.scheduler.draft = MostDrafted(flags.draft);
  options.page = false;
  options.reproducible_at = time;
  options.note = WriteSentence;
  return options;
}

// The first of these shards, as "0/8, 3/8".
std::string Names(const std::vector<size_t>& shards, size_t count) {
  constexpr size_t kMostNamed = 8;
  std::vector<std::string> names;
  for (size_t i = 0; i < shards.size() && i < kMostNamed; ++i)
    names.push_back(Shard{.index = shards[i], .count = count}.Text());
  if (shards.size() > kMostNamed) names.push_back("...");
  return absl::StrJoin(names, ", ");
}

absl::Status Report(const BatchJobOutcome& outcome, const RequestFile& requests, const Shard& shard,
                    const BatchFlags& flags) {
  if (!outcome.missing.empty()) {
    const size_t count = outcome.missing.size();
    WriteNote(absl::StrCat("inlay: shard ", shard.Text(), " is done, ", count,
                           count == 1 ? " is" : " are", " not yet (",
                           Names(outcome.missing, shard.count), "); the last one writes ",
                           PrintableName(flags.out), "\n"));
    return absl::OkStatus();
  }
  if (!outcome.joined) return absl::OkStatus();
  if (outcome.failed > 0) {
    return PartsFailedError(absl::StrCat(outcome.failed, " of ", Plural(requests.size(), "request"),
                                         " failed; ", flags.out, " has all results"));
  }
  WriteNote(absl::StrCat("inlay: ", PrintableName(flags.out), " has the ",
                         Plural(requests.size(), "result"), "\n"));
  return absl::OkStatus();
}

// What can be said before the file of the requests is read.
absl::Status CheckFlags(const BatchFlags& flags) {
  if (flags.model.sandbox)
    return UsageError("--sandbox lets no file be written, and a batch writes its results");
  if (flags.requests == "-") {
    return UsageError(
        "the requests of a batch are a file and not standard input: a job that goes on reads it "
        "again");
  }
  if (flags.out == "-") {
    return UsageError(
        "the output of a batch is a file and not standard output: it appears when all results are "
        "there, which are kept beside it until then");
  }
  return absl::OkStatus();
}

// InvalidArgument, naming the first one, where the model cannot do what requests ask for.
absl::Status CheckUrls(const RequestFile& requests, const LoadedModel& model) {
  const bool embeds = model.engine->info().embedding_dim > 0;
  const std::optional<uint64_t> line =
      embeds ? requests.first_to_answer() : requests.first_to_embed();
  if (!line.has_value()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      requests.path(), ":", *line, ": ",
      embeds ? "this asks for an answer, and the model embeds texts: its url is /v1/embeddings"
             : "/v1/embeddings needs a model that embeds texts, and this one generates text"));
}

// The time of what earlier runs and other shards have kept of this job, unless another one is
// asked for; at first that of the file.
absl::StatusOr<absl::Time> TimeOf(const BatchFlags& flags, const RequestFile& requests,
                                  const Shard& shard) {
  if (flags.time.has_value()) return absl::FromUnixSeconds(*flags.time);
  INLAY_ASSIGN_OR_RETURN(
      const std::optional<int64_t> kept,
      serve::FindJobTime(flags.out, shard, requests.Content(), flags.mode.restart));
  return kept.has_value() ? absl::FromUnixSeconds(*kept) : requests.modified();
}

absl::StatusOr<JobIdentity> IdentityOf(const RequestFile& requests, const LoadedModel& model,
                                       const Service& service, const ServiceOptions& options,
                                       const std::string& chat_template, absl::Time time) {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity identity, model.engine->Identity());
  return JobIdentity{.input = requests.Content(),
                     .weights = Format("%016x", identity.weights_hash),
                     .instruction_set = identity.instruction_set,
                     .cache_type = std::string(KvTypeName(options.scheduler.kv_type)),
                     .model = options.model_name,
                     .chat_template = chat_template,
                     .defaults = DumpJson(ToJson(options.parsing.defaults)),
                     .context = options.scheduler.context,
                     .time = absl::ToUnixSeconds(time),
                     .fingerprint = service.service_fingerprint()};
}

absl::Status Run(BatchFlags flags) {
  KeepUnwindingMemory();
  INLAY_RETURN_IF_ERROR(CheckFlags(flags));
  INLAY_ASSIGN_OR_RETURN(const ShardChoice choice, ChooseShard(flags.shard, [](const char* name) {
                           return std::getenv(name);
                         }));
  INLAY_ASSIGN_OR_RETURN(const RequestFile requests, RequestFile::Open(flags.requests));
  if (requests.IsFile(flags.out))
    return UsageError(absl::StrCat(flags.out, " is the file of the requests"));
  INLAY_RETURN_IF_ERROR(serve::CheckOutput(flags.out));
  INLAY_ASSIGN_OR_RETURN(const absl::Time time, TimeOf(flags, requests, choice.shard));
  INLAY_ASSIGN_OR_RETURN(const ChatTemplateChoice chosen,
                         ChatTemplateChoice::Read(flags.service.chat_template));
  INLAY_ASSIGN_OR_RETURN(const LoadedModels models, LoadModels(flags.draft, flags.model));
  // Only now: while a model is pulled and loaded nobody would ask it, and signals end the program.
  const InterruptWatch interrupt({SIGINT, SIGTERM, SIGHUP});
  const LoadedModel& model = models.model;
  INLAY_RETURN_IF_ERROR(CheckUrls(requests, model));
  absl::StatusOr<ChatRenderer> renderer = chosen.MakeRenderer(model);
  if (!renderer.ok() && !flags.service.chat_template.empty()) return renderer.status();
  ServiceOptions service_options = OptionsOf(flags, model, choice.neighbours, time);
  if (models.draft_model.has_value())
    service_options.scheduler.draft_model = models.draft_model->engine.get();
  const serve::ApiKeys keys;
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service,
                         Service::Create(model, std::move(renderer), keys, service_options));
  INLAY_RETURN_IF_ERROR(CheckContext(*service, service_options, model));
  INLAY_ASSIGN_OR_RETURN(
      const JobIdentity identity,
      IdentityOf(requests, model, *service, service_options, chosen.Identity(model), time));
  BatchJobOptions options{.out = flags.out,
                          .shard = choice.shard,
                          .mode = flags.mode,
                          .loop = {},
                          .note = WriteSentence};
  options.loop.most_in_flight = 2 * flags.service.parallel;
  options.loop.stop = [&interrupt] { return interrupt.requested(); };
  options.loop.check_handler = [&service] { return service->weights(); };
  std::optional<LoggedProgress> progress;
  options.loop.progress = [&](const serve::JobProgress& job) {
    if (!progress.has_value()) {
      progress.emplace(absl::StrCat("answering ", flags.requests), job.total, job.kept,
                       ProgressUnit::kRequests);
    }
    progress->Update(job.results, job.failed);
  };
  const absl::StatusOr<BatchJobOutcome> outcome = RunBatchJob(
      requests, identity,
      [&service](serve::HttpRequest request, std::shared_ptr<serve::HttpReply> reply) {
        service->Handle(std::move(request), std::move(reply));
      },
      options);
  progress.reset();
  if (absl::IsCancelled(outcome.status()) && interrupt.signal() == SIGINT)
    return InterruptedError(outcome.status().message());
  INLAY_RETURN_IF_ERROR(outcome.status());
  return Report(*outcome, requests, choice.shard, flags);
}

}  // namespace

void AddBatch(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<BatchFlags>();
  flags->model.embeds = std::nullopt;
  CLI::App& command = *app.add_subcommand(
      "batch", "Answers the requests in a file of OpenAI's batch format, many at a time.");
  AddEngineFlags(command, flags->model);
  command.get_option("--sandbox")->group("");  // always refused: not offered
  command.add_option("requests", flags->requests, "the file: a request as JSON on each line")
      ->type_name("FILE")
      ->required();
  command.add_option("-o,--output", flags->out, "the file for the results, in the same order")
      ->type_name("FILE")
      ->required();
  AddServiceFlags(command, "", flags->model, flags->service);
  // Drafts pay only where few answers run.
  AddDraftFlags(command, flags->draft, /*usual=*/0);
  AddShardFlag(command, flags->shard);
  command
      .add_option("--time", flags->time,
                  "seconds since 1970, as replies say when they were created and chat templates "
                  "are told (default: that of the results that are kept, and at first when the "
                  "file of the requests was modified)")
      ->check(Between(0, 253402300799.0));  // the year 9999
  command.add_flag("--restart", flags->mode.restart,
                   "discard what runs without it have kept, and replace the output");
  command.add_flag("--retry-failed", flags->mode.retry_failed,
                   "try requests again whose results have a status other than 200");
  command.footer(
      "Results are kept in OUTPUT.part as they come. After a signal, kill -9 or a loss of power "
      "the same command goes on; OUTPUT appears when all are done, with the same bytes whatever "
      "happened.\n"
      "Exit status: 0 all is well, 1 the job is not done, 2 usage, 3 done, but some requests "
      "failed, 130 the job was ended by Ctrl-C.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
