// A part of a batch job, for one of several processes.
#ifndef INLAY_SERVE_BATCH_JOB_SHARD_H_
#define INLAY_SERVE_BATCH_JOB_SHARD_H_

#include <cstddef>
#include <string>

#include "absl/strings/str_cat.h"

namespace inlay::serve {

// The most shards of a job: the journals of all of them are open while they are joined.
inline constexpr size_t kMostShards = 512;

// The requests whose number (from 0) leaves the remainder `index` when divided by `count`.
struct Shard {
  size_t index = 0;
  size_t count = 1;  // 1 to kMostShards

  // How many of so many requests it has.
  size_t SizeOf(size_t requests) const {
    return requests / count + (index < requests % count ? 1 : 0);
  }
  // "0/4"
  std::string Text() const { return absl::StrCat(index, "/", count); }
};

// Where the results of a shard are kept until `out` is written: OUT.part, or OUT.part.0-of-4 where
// there are several shards.
inline std::string JournalPath(const std::string& out, const Shard& shard) {
  if (shard.count == 1) return absl::StrCat(out, ".part");
  return absl::StrCat(out, ".part.", shard.index, "-of-", shard.count);
}

}  // namespace inlay::serve

#endif  // INLAY_SERVE_BATCH_JOB_SHARD_H_
