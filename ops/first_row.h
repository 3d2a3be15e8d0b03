// Searches rows with all threads of a team.
#ifndef INLAY_OPS_FIRST_ROW_H_
#define INLAY_OPS_FIRST_ROW_H_

#include <atomic>
#include <cstddef>

#include "ops/team.h"

namespace inlay {

// Runs a phase as ForRowsOfThreads does: calls is_found(row, thread) for every row, and returns the
// first row for which it returns true, `rows` if there is none.
template <class IsFound>
size_t FirstRow(Team& team, size_t rows, size_t cols, const IsFound& is_found) {
  std::atomic<size_t> first = rows;
  ForRowsOfThreads(team, rows, cols, [&](size_t row, size_t thread) {
    if (!is_found(row, thread)) return;
    for (size_t before = first; row < before && !first.compare_exchange_weak(before, row);)
      continue;
  });
  return first;
}

}  // namespace inlay

#endif  // INLAY_OPS_FIRST_ROW_H_
