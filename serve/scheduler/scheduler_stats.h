// What the scheduler has done so far, for /metrics.
#ifndef INLAY_SERVE_SCHEDULER_SCHEDULER_STATS_H_
#define INLAY_SERVE_SCHEDULER_SCHEDULER_STATS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "serve/prefixes/shared_prefixes.h"

namespace inlay::serve {

// Counts durations by upper bounds in seconds, as Prometheus' histograms do.
struct Histogram {
  static constexpr std::array<double, 18> kBounds = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
                                                     0.1,   0.25,   0.5,   1,    2.5,   5,
                                                     10,    30,     60,    120,  300,   600};
  std::array<uint64_t, kBounds.size() + 1> counts =
      {};  // of each bucket alone; the last: above all
  double sum = 0;

  void Add(absl::Duration duration) {
    const double seconds = absl::ToDoubleSeconds(duration);
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts[bucket];
    sum += seconds;
  }
};

struct SchedulerStats {
  // Now.
  size_t waiting = 0;  // answers in the queue
  size_t running = 0;
  size_t free_places = 0;     // for more answers at once; none where memory for the next is short
  size_t batch_tokens = 0;    // of the last step
  size_t reserved_bytes = 0;  // promised to running answers
  size_t used_bytes = 0;      // of conversations and snapshots
  size_t memory_bytes = 0;    // the limit of both
  size_t snapshots = 0;
  size_t snapshot_bytes = 0;
  // Since the start.
  uint64_t steps = 0;
  uint64_t requests = 0;
  uint64_t refused = 0;  // for a full queue
  uint64_t answers = 0;  // that ended as they should
  uint64_t failed = 0;   // with an error other than the next two
  uint64_t timed_out = 0;
  uint64_t cancelled = 0;
  uint64_t pauses = 0;
  uint64_t prompt_tokens = 0;    // of the requests
  uint64_t cached_tokens = 0;    // of these, reused
  uint64_t computed_tokens = 0;  // of prompts, computed again after pauses included
  uint64_t shared_hits = 0;      // prompts that began with a state from another server
  uint64_t shared_tokens = 0;    // of cached_tokens, at hand for the first time by that
  uint64_t generated_tokens = 0;
  uint64_t drafted_tokens = 0;
  uint64_t accepted_tokens = 0;
  Histogram queue_seconds;   // from a request's arrival to its first place in the batch
  Histogram first_token;     // from a request's arrival to its first token
  Histogram answer_seconds;  // from a request's arrival to the end of an answer without an error
  Histogram between_tokens;  // from a token to the next of the same answer
  Histogram step_seconds;
  std::optional<SharedPrefixStats> shared;  // where prefixes are shared among servers
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_SCHEDULER_STATS_H_
