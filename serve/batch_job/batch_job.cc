#include "serve/batch_job/batch_job.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/plural.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/file/file_lock.h"
#include "serve/batch_job/kept_journals.h"
#include "serve/batch_job/result_file.h"

namespace inlay::serve {
namespace {

constexpr absl::Duration kLockPoll = absl::Milliseconds(50);

// The lock of the output, which shards have for moments alone.
absl::StatusOr<FileLock> LockOutput(const BatchJobOptions& options) {
  while (true) {
    absl::StatusOr<FileLock> lock = FileLock::Acquire(options.out);
    if (!absl::IsUnavailable(lock.status())) return lock;
    if (options.loop.stop && options.loop.stop()) return absl::CancelledError("interrupted");
    absl::SleepFor(kLockPoll);
  }
}

// What the job has come to if its output is there already, complete; nothing where there is none.
// Fails where what is there may not be replaced.
absl::StatusOr<std::optional<BatchJobOutcome>> FindOutcome(const RequestFile& requests,
                                                           const JobIdentity& identity,
                                                           const BatchJobOptions& options) {
  INLAY_RETURN_IF_ERROR(CheckOutput(options.out));
  if (options.mode.restart) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(const std::optional<size_t> failed,
                         ReadResults(options.out, requests, identity, nullptr));
  if (!failed.has_value()) return std::nullopt;
  return BatchJobOutcome{.kept = requests.size(), .missing = {}, .joined = true, .failed = *failed};
}

// The journal takes over what the output has of its shard, but for requests that failed.
absl::Status TakeOver(const RequestFile& requests, const JobIdentity& identity,
                      const BatchJobOptions& options, Journal& journal) {
  const auto append = [&](size_t request, int status, absl::string_view line) -> absl::Status {
    const bool own = request % options.shard.count == options.shard.index;
    if (!own || status != 200 || journal.Has(request)) return absl::OkStatus();
    return journal.Append(request, status, line);
  };
  return ReadResults(options.out, requests, identity, append).status();
}

void TellWhatIsKept(const Journal& journal, size_t total, const BatchJobOptions& options) {
  if (!options.note) return;
  const std::string path = PrintableName(journal.path());
  if (journal.damaged() > 0 && journal.results() < total) {
    options.note(absl::StrCat(path, " has ", Plural(journal.damaged(), "damaged line"),
                              ": what was there is computed again"));
  }
  if (journal.retried() > 0)
    options.note(absl::StrCat(Plural(journal.retried(), "failed request"), " of ", path,
                              journal.retried() == 1 ? " is" : " are", " tried again"));
  if (journal.results() > 0 && journal.results() < total)
    options.note(absl::StrCat(journal.results(), " of ", Plural(total, "result"),
                              journal.results() == 1 ? " is" : " are", " there already, in ",
                              path));
}

// Where the results are, after an error: nowhere if the journal is no longer what it was. The same
// call then goes on, unless it is the output that cannot be written, with AlreadyExists or
// InvalidArgument. A file of requests that has changed says what to do itself.
absl::Status WithPlaceOfResults(const absl::Status& error, const std::string& path) {
  if (error.message().empty() || absl::IsFailedPrecondition(error)) return error;
  if (!ReadJournalHeader(path).ok()) return error;
  const bool goes_on = !absl::IsAlreadyExists(error) && !absl::IsInvalidArgument(error);
  return absl::Status(error.code(),
                      absl::StrCat(error.message(), "; the results so far are kept in ", path,
                                   goes_on ? ", and the same command goes on with the rest" : ""));
}

// What the shard has come to whose journal is gone. Another shard removes it once it has joined
// all; whatever else removed it has removed results.
absl::StatusOr<BatchJobOutcome> WithoutJournal(const RequestFile& requests,
                                               const JobIdentity& identity,
                                               const BatchJobOptions& options,
                                               const BatchJobOutcome& so_far,
                                               const std::string& path) {
  if (options.shard.count > 1) {
    const absl::StatusOr<std::optional<size_t>> joined =
        ReadResults(options.out, requests, identity, nullptr);
    if (joined.ok() && joined->has_value()) return so_far;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      path, " was removed while the job ran; the same command computes its results again"));
}

// Has what the journal lacks answered, and joins the shards.
absl::StatusOr<BatchJobOutcome> Finish(const RequestFile& requests, const JobIdentity& identity,
                                       const HttpHandler& handler, const BatchJobOptions& options,
                                       Journal& journal) {
  BatchJobOutcome outcome;
  outcome.kept = journal.results();
  INLAY_RETURN_IF_ERROR(
      AnswerRequests(requests, identity, options.shard, handler, journal, options.loop));
  INLAY_ASSIGN_OR_RETURN(const FileLock lock, LockOutput(options));
  if (!journal.exists())
    return WithoutJournal(requests, identity, options, outcome, journal.path());
  INLAY_ASSIGN_OR_RETURN(JoinOutcome joined, JoinShards(options.out, requests, identity,
                                                        options.shard.count, options.mode));
  const std::vector<size_t>& missing = joined.missing;
  if (std::find(missing.begin(), missing.end(), options.shard.index) != missing.end())
    return absl::DataLossError(absl::StrCat(journal.path(), " has changed while the job ran"));
  outcome.joined = missing.empty();
  outcome.missing = std::move(joined.missing);
  outcome.failed = joined.failed;
  return outcome;
}

}  // namespace

absl::StatusOr<BatchJobOutcome> RunBatchJob(const RequestFile& requests,
                                            const JobIdentity& identity, const HttpHandler& handler,
                                            const BatchJobOptions& options) {
  const std::string path = JournalPath(options.out, options.shard);
  INLAY_ASSIGN_OR_RETURN(std::optional<FileLock> lock, LockOutput(options));
  INLAY_ASSIGN_OR_RETURN(const std::optional<BatchJobOutcome> found,
                         FindOutcome(requests, identity, options));
  const bool retries = options.mode.retry_failed && found.has_value() && found->failed > 0;
  if (found.has_value() && !retries) {
    // A journal is there if the process that wrote the output ended before it removed it.
    (void)RemoveJournal(path);
    return *found;
  }
  INLAY_RETURN_IF_ERROR(CheckOtherCounts(options.out, options.shard.count, options.mode.restart));
  if (!options.mode.restart)
    INLAY_RETURN_IF_ERROR(CheckOtherShards(options.out, identity, options.shard));
  INLAY_ASSIGN_OR_RETURN(
      Journal journal, Journal::Open(path, identity, options.shard, requests.size(), options.mode));
  if (retries) INLAY_RETURN_IF_ERROR(TakeOver(requests, identity, options, journal));
  lock.reset();
  TellWhatIsKept(journal, options.shard.SizeOf(requests.size()), options);
  absl::StatusOr<BatchJobOutcome> outcome = Finish(requests, identity, handler, options, journal);
  if (!outcome.ok()) return WithPlaceOfResults(outcome.status(), path);
  return outcome;
}

}  // namespace inlay::serve
