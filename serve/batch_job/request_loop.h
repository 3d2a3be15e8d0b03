// Has the requests of a shard answered, many at a time.
#ifndef INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_
#define INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_

#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/progress.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/journal.h"
#include "serve/batch_job/request_file.h"
#include "serve/batch_job/shard.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

struct RequestLoopOptions {
  size_t most_in_flight = 128;             // requests that the handler has at a time
  absl::Duration sync = absl::Seconds(1);  // results wait no longer until they are on the disk
  std::function<bool()> stop = nullptr;    // asked every 50 ms; null: never
  Progress progress = nullptr;             // in requests, of those that had no result
};

// Gives `handler` each request of the shard for which the journal has no result, as the body of an
// HTTP request, and appends the results as they come. What the handler refuses for lack of memory
// (429, or no reply) it gets once more when it has nothing else; what it then says is the result.
// Returns once each request has its result, with Cancelled when `stop` says so, or with the first
// error of the files. The handler may send replies after that; they are ignored.
absl::Status AnswerRequests(const RequestFile& requests, const JobIdentity& identity,
                            const Shard& shard, const HttpHandler& handler, Journal& journal,
                            const RequestLoopOptions& options);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_REQUEST_LOOP_H_
