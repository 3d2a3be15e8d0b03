// inlay batch: answers the requests in a file.
#include <signal.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "serve/batch_job/batch_job.h"
#include "serve/batch_job/job_identity.h"
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

struct BatchFlags {
  ModelFlags model;
  std::string requests, out;
  ServiceFlags service;
  DraftFlags draft;
  std::string shard;
  bool restart = false;
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
  return options;
}

absl::Status Report(const BatchJobOutcome& outcome, const RequestFile& requests,
                    const std::string& shard, const BatchFlags& flags) {
  if (outcome.missing > 0) {
    WriteNote(absl::StrCat("inlay: shard ", shard, " is done, ", outcome.missing,
                           outcome.missing == 1 ? " is" : " are", " not yet; the last one writes ",
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

absl::Status Run(BatchFlags flags) {
  if (flags.model.sandbox)
    return UsageError("--sandbox lets no file be written, and a batch writes its results");
  INLAY_ASSIGN_OR_RETURN(const ShardChoice choice, ChooseShard(flags.shard, [](const char* name) {
                           return std::getenv(name);
                         }));
  INLAY_ASSIGN_OR_RETURN(const RequestFile requests, RequestFile::Open(flags.requests));
  if (requests.IsFile(flags.out))
    return UsageError(absl::StrCat(flags.out, " is the file of the requests"));
  INLAY_RETURN_IF_ERROR(serve::CheckOutput(flags.out));
  INLAY_ASSIGN_OR_RETURN(const ChatTemplateChoice chosen,
                         ChatTemplateChoice::Read(flags.service.chat_template));
  INLAY_ASSIGN_OR_RETURN(const LoadedModels models, LoadModels(flags.draft, flags.model));
  // Only now: while a model is pulled and loaded nobody would ask it, and signals end the program.
  const InterruptWatch interrupt({SIGINT, SIGTERM, SIGHUP});
  const LoadedModel& model = models.model;
  absl::StatusOr<ChatRenderer> renderer = chosen.MakeRenderer(model);
  if (!renderer.ok() && !flags.service.chat_template.empty()) return renderer.status();
  const absl::Time time =
      flags.time.has_value() ? absl::FromUnixSeconds(*flags.time) : requests.modified();
  ServiceOptions service_options = OptionsOf(flags, model, choice.neighbours, time);
  if (models.draft_model.has_value())
    service_options.scheduler.draft_model = models.draft_model->engine.get();
  const serve::ApiKeys keys;
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<Service> service,
                         Service::Create(model, std::move(renderer), keys, service_options));
  INLAY_RETURN_IF_ERROR(CheckContext(*service, service_options, model));
  const JobIdentity identity{.input = requests.Content(),
                             .fingerprint = service->service_fingerprint(),
                             .model = service_options.model_name,
                             .chat_template = chosen.Identity(model),
                             .context = service_options.scheduler.context,
                             .time = absl::ToUnixSeconds(time)};
  BatchJobOptions options{
      .out = flags.out, .shard = choice.shard, .restart = flags.restart, .loop = {}};
  options.loop.most_in_flight = 2 * flags.service.parallel;
  options.loop.stop = [&interrupt] { return interrupt.requested(); };
  options.loop.progress =
      ShowProgress(absl::StrCat("answering ", flags.requests), ProgressUnit::kRequests);
  const absl::StatusOr<BatchJobOutcome> outcome = RunBatchJob(
      requests, identity,
      [&service](serve::HttpRequest request, std::shared_ptr<serve::HttpReply> reply) {
        service->Handle(std::move(request), std::move(reply));
      },
      options);
  options.loop.progress = nullptr;
  if (absl::IsCancelled(outcome.status())) {
    return absl::CancelledError(absl::StrCat("interrupted: the results so far are kept in ",
                                             JournalPath(flags.out, choice.shard),
                                             ", and the same command goes on with the rest"));
  }
  INLAY_RETURN_IF_ERROR(outcome.status());
  return Report(*outcome, requests, choice.shard.Text(), flags);
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
                  "are told (default: when the file of the requests was modified)")
      ->check(Between(0, 253402300799.0));  // the year 9999
  command.add_flag("--restart", flags->restart,
                   "discard what runs without it have kept, and replace the output");
  command.footer(
      "Results are kept in OUTPUT.part as they come. After a signal, kill -9 or a loss of power "
      "the "
      "same\ncommand goes on; OUTPUT appears when all are done, with the same bytes whatever "
      "happened.\nExit status: 0 all is well, 1 the job is not done, 2 usage, 3 done, but some "
      "requests failed.");
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
