// Told of what happens to conversations, so that copies of them elsewhere can follow.
#ifndef INLAY_CACHE_CACHE_FOLLOWER_H_
#define INLAY_CACHE_CACHE_FOLLOWER_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace inlay {

class ByteSink;
class ByteSource;
class KVCache;

// Appends are not reported. An error refuses the operation, of which nothing has happened yet.
// Different caches may be reported from different threads at once.
//
// Where each copy has a part of the layers alone, the follower also writes and reads all parts.
class CacheFollower {
 public:
  virtual ~CacheFollower() = default;

  // `fork` now is a copy of `cache`, and is followed too.
  virtual absl::Status Forked(const KVCache& cache, const KVCache& fork) = 0;
  // `cache` will end at `position`.
  virtual absl::Status Rewound(const KVCache& cache, size_t position) = 0;
  // `cache` will give back what only rewinds by more than `rewind` tokens need.
  virtual absl::Status Trimmed(const KVCache& cache, size_t rewind) = 0;
  // `cache` will have the past of `snapshot`, which will be empty. Needs no memory, as what was
  // half done is undone by this where there is none left.
  virtual absl::Status Replaced(const KVCache& cache, const KVCache& snapshot) = 0;
  // Writes the layers of `cache` at all copies, each by KVCache::SavePart with this seed.
  virtual absl::Status SaveParts(const KVCache& cache, uint64_t seed, ByteSink& sink) = 0;
  // Reads them into `cache` and its copies, which get these tokens, each by KVCache::LoadPart.
  // `cache` is a fork that nobody uses yet, and after an error can only be destroyed.
  virtual absl::Status LoadParts(KVCache& cache, uint64_t seed, absl::Span<const int32_t> tokens,
                                 ByteSource& source) = 0;
  // `cache` is destroyed.
  virtual void Dropped(const KVCache& cache) = 0;
};

}  // namespace inlay

#endif  // INLAY_CACHE_CACHE_FOLLOWER_H_
