// Told of what happens to conversations, so that copies of them elsewhere can follow.
#ifndef INLAY_CACHE_CACHE_FOLLOWER_H_
#define INLAY_CACHE_CACHE_FOLLOWER_H_

#include <cstddef>

#include "absl/status/status.h"

namespace inlay {

class KVCache;

// Of appends the owner of the caches knows by itself. An error refuses the operation, of which
// nothing has happened yet. Different caches may be reported from different threads at once.
class CacheFollower {
 public:
  virtual ~CacheFollower() = default;

  // `fork` now is a copy of `cache`, and is followed too.
  virtual absl::Status Forked(const KVCache& cache, const KVCache& fork) = 0;
  // `cache` will end at `position`.
  virtual absl::Status Rewound(const KVCache& cache, size_t position) = 0;
  // `cache` will have the past of `snapshot`, which will be empty.
  virtual absl::Status Replaced(const KVCache& cache, const KVCache& snapshot) = 0;
  // `cache` is destroyed.
  virtual void Dropped(const KVCache& cache) = 0;
};

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_FOLLOWER_H_
