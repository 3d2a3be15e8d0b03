// How a cache stores rows and states, and what it guarantees.
#ifndef INLAY_CACHE_STORAGE_POLICY_H_
#define INLAY_CACHE_STORAGE_POLICY_H_

#include <cstddef>

#include "ops/attention/kv_type.h"
#include "ops/state_chunk.h"
#include "ops/state_type.h"

namespace inlay {

template <KvType kKvType_>
struct StoragePolicy {
  static constexpr KvType kKvType = kKvType_;
  // States of recurrent layers have 16 bits where rows have 16 or 8.
  static constexpr StateType kStateType =
      kKvType == KvType::kF32 ? StateType::kF32 : StateType::kQ16;
  // The largest append, in tokens: the rings of sliding windows have room for one. A config of a
  // model that embeds texts says more: see HybridCache::kMaxAppend.
  static constexpr size_t kMaxAppend = 512;
  // A rewind by up to this many tokens from the greatest length always succeeds. A chunk log
  // guarantees it by keeping the chunk before the current one; windows keep as many additional
  // rows.
  static constexpr size_t kRewindDepth = kStateChunk;
};

using F32Storage = StoragePolicy<KvType::kF32>;
using F16Storage = StoragePolicy<KvType::kF16>;
using BF16Storage = StoragePolicy<KvType::kBF16>;
using Q8Storage = StoragePolicy<KvType::kQ8>;
using DefaultStorage = StoragePolicy<kDefaultKvType>;

// Calls f(policy) with the policy of this row type.
template <class F>
auto WithStorage(KvType type, F f) {
  switch (type) {
    case KvType::kF16:
      return f(F16Storage());
    case KvType::kBF16:
      return f(BF16Storage());
    case KvType::kQ8:
      return f(Q8Storage());
    case KvType::kF32:
      break;
  }
  return f(F32Storage());
}

}  // namespace inlay

#endif  // INLAY_CACHE_STORAGE_POLICY_H_
