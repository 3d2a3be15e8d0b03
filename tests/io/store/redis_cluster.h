// Servers that are started with --cluster-enabled, made a cluster.
#ifndef INLAY_TESTS_IO_REDIS_CLUSTER_H_
#define INLAY_TESTS_IO_REDIS_CLUSTER_H_

#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/store/redis_connection.h"
#include "tests/must.h"

namespace inlay {

// The node of this port gets the slots from `first` to `last`, of 0 to 16383.
inline void GiveSlots(uint16_t port, int first, int last) {
  const auto raw = Must(RedisConnection::Connect({.port = port}, 1 << 16));
  Must(raw->Command({"CLUSTER", "ADDSLOTSRANGE", absl::StrCat(first), absl::StrCat(last)}));
}

// Until this node knows of all slots.
inline void WaitForCluster(uint16_t port) {
  const auto raw = Must(RedisConnection::Connect({.port = port}, 1 << 16));
  for (int i = 0; i < 1000; ++i) {
    if (absl::StrContains(Must(raw->Command({"CLUSTER", "INFO"})).text, "cluster_state:ok")) return;
    absl::SleepFor(absl::Milliseconds(10));
  }
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_REDIS_CLUSTER_H_
