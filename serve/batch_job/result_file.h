// The output of a batch job: its results in the order of the requests, all or none.
#ifndef INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
#define INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/request_file.h"

namespace inlay::serve {

// What has become of the shards of a job.
struct JoinOutcome {
  size_t missing = 0;  // shards without all of their results; with any, nothing was written
  size_t failed = 0;   // results with a status other than 200
};

// Ok where `out` is new, empty, or begins as the output of a batch job does, whatever job that was.
// Otherwise fails as CheckReplace does, or with InvalidArgument, and the file is never replaced.
absl::Status CheckOutput(const std::string& out);

// Writes `out` from the journals of so many shards, if all of them have their ends, and then
// removes the journals. The caller has the lock of `out`. Where the job restarts, what exists at
// `out` is replaced, and what other jobs and runs before the restart have kept counts as missing.
// Fails as CheckOutput does, with AlreadyExists for an output that is not replaced, and with the
// errors of JournalReader::Open for a journal of another job.
absl::StatusOr<JoinOutcome> JoinShards(const std::string& out, const RequestFile& requests,
                                       const JobIdentity& identity, size_t shards, bool restart);

// How many results in `out` have a status other than 200; nothing where it is not the output of
// this job, complete.
absl::StatusOr<std::optional<size_t>> FailedResultsIn(const std::string& out,
                                                      const RequestFile& requests,
                                                      const JobIdentity& identity);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
