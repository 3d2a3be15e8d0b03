#include "gemma_like/cache_limit.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "cache/block_pool.h"
#include "cache/cache_bytes.h"

namespace inlay {

size_t MostCacheBytes(const Engine& engine, KvType type, size_t max_length, size_t snapshots) {
  const CacheBytes plan = engine.PlanCache(type);
  const size_t kept = snapshots == 0 ? 0 : plan.Kept() + (snapshots - 1) * plan.trimmed;
  return plan.At(max_length) + plan.append + kept;
}

absl::StatusOr<std::unique_ptr<KVCache>> CreateCacheWithin(const Engine& engine, size_t limit_bytes,
                                                           const CacheOptions& options, KvType type,
                                                           size_t snapshots) {
  const size_t most = MostCacheBytes(engine, type, options.max_length, snapshots);
  if (most > limit_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("a conversation of ", Plural(options.max_length, "token"), " with ",
                     engine.info().config_name, " and ", KvTypeName(type), " rows may need ", most,
                     " bytes, more than the limit of ", limit_bytes));
  }
  return OrOutOfMemory("a conversation", [&]() -> absl::StatusOr<std::unique_ptr<KVCache>> {
    CacheOptions limited = options;
    limited.pool = std::make_shared<BlockPool>(BlockPool::Options{.limit_bytes = limit_bytes});
    return engine.CreateCache(limited, type);
  });
}

}  // namespace inlay
