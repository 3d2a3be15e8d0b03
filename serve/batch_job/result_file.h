// The output of a batch job: its results in the order of the requests, all or none.
#ifndef INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
#define INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "io/file/file_kind.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/request_file.h"

namespace inlay::serve {

// What has become of the shards of a job.
struct JoinOutcome {
  size_t missing = 0;  // shards without all of their results; with any, nothing was written
  size_t failed = 0;   // results with a status other than 200
};

// Writes `out` from the journals of so many shards, if all of them have their ends, and then
// removes the journals. The caller has the lock of `out`. Fails as CheckReplace does, and with the
// errors of JournalReader::Open for a journal of another job.
absl::StatusOr<JoinOutcome> JoinShards(const std::string& out, const RequestFile& requests,
                                       const JobIdentity& identity, size_t shards, Replace replace);

// How many results in `out` have a status other than 200; nothing where it is not the output of
// this job, complete.
absl::StatusOr<std::optional<size_t>> FailedResultsIn(const std::string& out,
                                                      const RequestFile& requests,
                                                      const JobIdentity& identity);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_RESULT_FILE_H_
