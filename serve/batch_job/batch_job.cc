#include "serve/batch_job/batch_job.h"

#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "io/file/file_kind.h"
#include "io/file/file_lock.h"
#include "serve/batch_job/journal.h"
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
  if (options.restart) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(const std::optional<size_t> failed,
                         FailedResultsIn(options.out, requests, identity));
  if (failed.has_value()) {
    return BatchJobOutcome{
        .kept = requests.size(), .missing = 0, .joined = true, .failed = *failed};
  }
  const absl::Status status = CheckReplace(options.out, FileKind::kOther, Replace::kNothing);
  if (absl::IsAlreadyExists(status)) {
    return absl::AlreadyExistsError(absl::StrCat(
        options.out, " exists and is not the output of this job; --restart replaces it"));
  }
  INLAY_RETURN_IF_ERROR(status);
  return std::nullopt;
}

}  // namespace

absl::StatusOr<BatchJobOutcome> RunBatchJob(const RequestFile& requests,
                                            const JobIdentity& identity, const HttpHandler& handler,
                                            const BatchJobOptions& options) {
  const std::string path = JournalPath(options.out, options.shard);
  INLAY_ASSIGN_OR_RETURN(std::optional<FileLock> lock, LockOutput(options));
  INLAY_ASSIGN_OR_RETURN(const std::optional<BatchJobOutcome> found,
                         FindOutcome(requests, identity, options));
  if (found.has_value()) {
    // A journal is there if the process that wrote the output ended before it removed it.
    (void)RemoveJournal(path, identity, options.shard, requests.size());
    return *found;
  }
  INLAY_ASSIGN_OR_RETURN(Journal journal, Journal::Open(path, identity, options.shard,
                                                        requests.size(), options.restart));
  lock.reset();
  BatchJobOutcome outcome;
  outcome.kept = journal.results();
  INLAY_RETURN_IF_ERROR(
      AnswerRequests(requests, identity, options.shard, handler, journal, options.loop));
  INLAY_ASSIGN_OR_RETURN(lock, LockOutput(options));
  if (!journal.exists()) {
    // Another shard has found this one done, and joined all.
    if (access(options.out.c_str(), F_OK) == 0) return outcome;
    return absl::DataLossError(absl::StrCat(path, " was removed"));
  }
  INLAY_ASSIGN_OR_RETURN(
      const JoinOutcome joined,
      JoinShards(options.out, requests, identity, options.shard.count, options.restart));
  outcome.missing = joined.missing;
  outcome.joined = joined.missing == 0;
  outcome.failed = joined.failed;
  return outcome;
}

}  // namespace inlay::serve
