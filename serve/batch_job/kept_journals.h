// What earlier runs and other shards of a job have kept beside its output.
#ifndef INLAY_SERVE_BATCH_JOB_KEPT_JOURNALS_H_
#define INLAY_SERVE_BATCH_JOB_KEPT_JOURNALS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "serve/batch_job/job_identity.h"
#include "serve/batch_job/shard.h"

namespace inlay::serve {

// The time (JobIdentity::time) of what is kept of a job with these requests (RequestFile::Content):
// by a journal of the shard or of another one, or else by the output. So a job goes on whose file
// of requests was copied or touched. Where the job restarts, only journals of a restart count.
// Nothing where no file has it; one that cannot be read counts as missing.
absl::StatusOr<std::optional<int64_t>> FindJobTime(const std::string& out, const Shard& shard,
                                                   const std::string& input, bool restart);

// The error of CheckSameJob or ReadJournalHeader for the first journal of the other shards that is
// of another job or another version: its results could never be joined with those of this shard.
// Not for a job that restarts, whose shards discard what is there when their turn comes.
absl::Status CheckOtherShards(const std::string& out, const JobIdentity& identity,
                              const Shard& shard);

// FailedPrecondition, naming them, where there are journals of `out` for another number of shards:
// their results would be lost. A restart removes them instead; Unavailable while a process has one.
absl::Status CheckOtherCounts(const std::string& out, size_t shards, bool restart);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_KEPT_JOURNALS_H_
