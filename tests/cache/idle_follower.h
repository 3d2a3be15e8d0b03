// A follower of caches that has nothing to do.
#ifndef INLAY_TESTS_CACHE_IDLE_FOLLOWER_H_
#define INLAY_TESTS_CACHE_IDLE_FOLLOWER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/byte_stream.h"
#include "cache/cache_follower.h"

namespace inlay {

// Succeeds at everything; tests override what is to fail.
class IdleFollower : public CacheFollower {
 public:
  absl::Status Forked(const KVCache&, const KVCache&) override { return absl::OkStatus(); }
  absl::Status Rewound(const KVCache&, size_t) override { return absl::OkStatus(); }
  absl::Status Trimmed(const KVCache&, size_t) override { return absl::OkStatus(); }
  absl::Status Replaced(const KVCache&, const KVCache&) override { return absl::OkStatus(); }
  absl::Status SaveParts(const KVCache&, uint64_t, ByteSink&) override { return absl::OkStatus(); }
  absl::Status LoadParts(KVCache&, uint64_t, absl::Span<const int32_t>, ByteSource&) override {
    return absl::OkStatus();
  }
  void Dropped(const KVCache&) override {}
};

}  // namespace inlay

#endif  // INLAY_TESTS_CACHE_IDLE_FOLLOWER_H_
