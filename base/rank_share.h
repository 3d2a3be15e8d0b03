// How the parts of a model are shared out among the ranks that compute it together.
#ifndef INLAY_BASE_RANK_SHARE_H_
#define INLAY_BASE_RANK_SHARE_H_

#include <cstddef>

namespace inlay {

// One rank among how many.
struct RankShare {
  size_t rank = 0;
  size_t count = 1;
};

// Some of many things, one after the other.
struct PartRange {
  size_t first = 0;
  size_t count = 0;
};

// Which of n things are a rank's: equally many for each, or one more. Where there are fewer than
// ranks, each rank has them all.
constexpr PartRange PartOfRank(size_t n, RankShare share) {
  if (n < share.count) return {0, n};
  const size_t first = n * share.rank / share.count;
  return {first, n * (share.rank + 1) / share.count - first};
}

// The share of a rank's group: `size` neighbouring ranks are one group and get the same. `size`
// divides share.count.
constexpr RankShare ShareOfGroup(RankShare share, size_t size) {
  return {share.rank / size, share.count / size};
}

// The rank whose part of anything is the largest.
constexpr RankShare LargestShare(RankShare share) { return {share.count - 1, share.count}; }

}  // namespace inlay

#endif  // INLAY_BASE_RANK_SHARE_H_
