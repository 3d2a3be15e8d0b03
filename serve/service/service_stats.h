// What a service has done so far besides its scheduler, for /metrics.
#ifndef INLAY_SERVE_SERVICE_SERVICE_STATS_H_
#define INLAY_SERVE_SERVICE_SERVICE_STATS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "serve/scheduler/scheduler_stats.h"

namespace inlay::serve {

// Of /v1/embeddings. Several threads may count at once.
struct EmbeddingCounts {
  std::atomic<size_t> taken_places = 0;  // requests that are computed or wait for that, now
  // Since the start.
  std::atomic<uint64_t> requests = 0;  // that were let in
  std::atomic<uint64_t> refused = 0;   // for a full queue
  std::atomic<uint64_t> failed = 0;    // that ended with an error
  std::atomic<uint64_t> tokens = 0;    // of texts that were embedded
};

// Replies by the first digit of their status, but for those of /health and /metrics. Several
// threads may count at once.
struct ReplyCounts {
  static constexpr int kFirst = 2, kLast = 5;
  std::array<std::atomic<uint64_t>, kLast - kFirst + 1> of_class = {};

  void Add(int status) {
    const int digit = status / 100;
    if (digit >= kFirst && digit <= kLast) ++of_class[static_cast<size_t>(digit - kFirst)];
  }
};

// The figures of one moment.
struct ServiceStats {
  size_t connections = 0;  // open ones
  const ReplyCounts* replies = nullptr;
  std::optional<SchedulerStats> scheduler = std::nullopt;  // of a model that generates text
  const EmbeddingCounts* embeddings = nullptr;             // of one that embeds texts
  struct Log {
    uint64_t lost = 0;  // records
    size_t waiting_bytes = 0;
  };
  std::optional<Log> answer_log = std::nullopt;              // where answers are logged
  std::optional<uint64_t> lost_access_lines = std::nullopt;  // where requests are
  struct Server {
    std::string version = {};      // of the program
    std::string model = {};        // its name
    std::string fingerprint = {};  // of the service
    double started = 0;            // when its process was; seconds since 1970
    std::optional<uint64_t> resident_bytes = std::nullopt;  // of its process
    bool draining = false;
    bool model_is_readable = true;
    uint64_t failed_key_reloads = 0;
  };
  std::optional<Server> server = std::nullopt;
  struct Sessions {
    bool up = true;                              // the store can be reached
    std::optional<size_t> count = std::nullopt;  // see SessionStore::KnownCount
    size_t in_use = 0;                           // that requests are changing now
    struct Memory {
      uint64_t bytes = 0, most_bytes = 0;
    };
    std::optional<Memory> memory = std::nullopt;  // of those that are kept in memory
  };
  std::optional<Sessions> sessions = std::nullopt;  // where there are some
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_SERVICE_STATS_H_
