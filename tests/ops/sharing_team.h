// A team that shares out even the small phases of tests.
#ifndef INLAY_TESTS_OPS_SHARING_TEAM_H_
#define INLAY_TESTS_OPS_SHARING_TEAM_H_

#include <cstddef>

#include "ops/team.h"

namespace inlay {

// One thread alone would compute all of most of them, whatever the number of threads.
class SharingTeam : public Team {
 public:
  explicit SharingTeam(size_t threads) : Team(threads) { Set({.chunks = 2 * threads + 1}); }
};

}  // namespace inlay

#endif  // INLAY_TESTS_OPS_SHARING_TEAM_H_
