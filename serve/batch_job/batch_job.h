// A batch job: requests in a file, answered without a network, one result for each whatever dies.
#ifndef INLAY_SERVE_BATCH_JOB_BATCH_JOB_H_
#define INLAY_SERVE_BATCH_JOB_BATCH_JOB_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/request_loop.h"
#include "serve/batch_job/shard.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

struct BatchJobOptions {
  std::string out;  // the output
  Shard shard;      // what this process does
  // `restart`: discard results of runs before this restart, and replace the output of a batch job.
  // `retry_failed`: have requests answered again that failed, also of an output that is complete.
  // Shards do that for themselves: one whose failed requests were not retried counts as missing.
  JournalMode mode = {};
  RequestLoopOptions loop;
  // Told in a sentence what earlier runs have left, before the first request; may be null.
  std::function<void(absl::string_view sentence)> note = nullptr;
};

struct BatchJobOutcome {
  size_t kept = 0;              // results of earlier runs
  std::vector<size_t> missing;  // shards that are not done; with any, the output is not there yet
  bool joined = false;          // this process has written the output, or found it complete
  size_t failed = 0;            // with `joined`: results with a status other than 200
};

// Has the requests of the shard answered by `handler`. Their results are kept in a journal beside
// the output (JournalPath), so that a job that was ended in any way goes on with the same call, a
// restart too: it goes on with what a restart of the same job has kept.
// The shard that is done last writes the output: all results in the order of the requests, which
// appear under its name at once; the journals are then removed. Where the output is there already,
// complete, nothing is done.
//
// The bytes of a result depend on its request and the identity alone, if those of the handler's
// replies do. AlreadyExists for the output of another job, unless it restarts; FailedPrecondition
// where there are results of another job, or of another number of shards, or where the journal was
// removed meanwhile; DataLoss where it was changed; Unavailable when another process has the shard,
// Cancelled when it was stopped, the errors of CheckOutput, Journal::Open, JoinShards and
// AnswerRequests. Errors after which the same call goes on say so.
absl::StatusOr<BatchJobOutcome> RunBatchJob(const RequestFile& requests,
                                            const JobIdentity& identity, const HttpHandler& handler,
                                            const BatchJobOptions& options);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_BATCH_JOB_H_
