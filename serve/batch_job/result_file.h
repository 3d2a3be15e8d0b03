// The output of a batch job: its results in the order of the requests, all or none.
#ifndef INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
#define INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/request_file.h"

namespace inlay::serve {

// What has become of the shards of a job.
struct JoinOutcome {
  // Shards that are not done; with any, nothing was written.
  std::vector<size_t> missing;
  size_t failed = 0;  // results with a status other than 200
};

// Ok where `out` is new, empty, or begins as the output of a batch job does, whatever job that was.
// Otherwise fails as CheckReplace does, or with InvalidArgument, and the file is never replaced.
// NotFound or PermissionDenied, naming the folder, where that has no place for a file.
absl::Status CheckOutput(const std::string& out);

// Writes `out` from the journals of so many shards, if all of them have all results, and then
// removes the journals. The caller has the lock of `out`. Where the job restarts, what other jobs
// and runs before the restart have kept counts as missing; where failed requests are retried, so
// does a shard with some that it has not retried; in both cases what exists at `out` is replaced.
// Fails as CheckOutput does, with AlreadyExists for an output that is not replaced, and with the
// errors of JournalReader::Open for a journal of another job.
absl::StatusOr<JoinOutcome> JoinShards(const std::string& out, const RequestFile& requests,
                                       const JobIdentity& identity, size_t shards,
                                       const JournalMode& mode);

// Told of each result of an output: the request's number, the status and the line.
using OnResult = std::function<absl::Status(size_t request, int status, absl::string_view line)>;

// Reads the output of this job, complete: how many of its results have a status other than 200.
// Nothing where there is no file, or an empty one. AlreadyExists where it is not the output of this
// job, with a sentence that says what differs first. `on_result` may be null.
absl::StatusOr<std::optional<size_t>> ReadResults(const std::string& out,
                                                  const RequestFile& requests,
                                                  const JobIdentity& identity,
                                                  const OnResult& on_result);

// The time of creation in the first result of `out` that has one; nothing where none has.
std::optional<int64_t> CreationTimeIn(const std::string& out);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
