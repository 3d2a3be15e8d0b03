// Has the requests of a shard answered, many at a time.
#ifndef INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_
#define INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/shard.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// How far a shard is, in requests.
struct JobProgress {
  size_t kept = 0;     // of earlier runs
  size_t results = 0;  // with those
  size_t failed = 0;   // of them, with a status other than 200
  size_t total = 0;
};

struct RequestLoopOptions {
  size_t most_in_flight = 128;             // requests that the handler has at a time
  absl::Duration sync = absl::Seconds(1);  // results wait no longer until they are on the disk
  std::function<bool()> stop = nullptr;    // asked every 50 ms; null: never
  std::function<void(const JobProgress&)> progress = nullptr;  // told as often; may be null
  // Asked when the handler refuses a request: the error by which it will refuse all others, too, as
  // of a model that cannot be read any more. Null: there are no such errors.
  std::function<absl::Status()> check_handler = nullptr;
};

// Gives `handler` each request of the shard for which the journal has no result, as the body of an
// HTTP request, and appends the results as they come. What the handler refuses for lack of memory
// (429, 503 or no reply) it gets once more when it has nothing else. A refusal is no result, since
// it depends on the machine: requests that are refused again have none in the end.
// Returns once each request has its result. Errors: ResourceExhausted where some have none,
// Cancelled when `stop` says so, the error of `check_handler`, the first error of the files. What
// came before stays in the journal. The handler may send replies after that; they are ignored.
absl::Status AnswerRequests(const RequestFile& requests, const JobIdentity& identity,
                            const Shard& shard, const HttpHandler& handler, Journal& journal,
                            const RequestLoopOptions& options);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_
