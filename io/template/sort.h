// Sorting values as Python does: stable, and an error where two have no order.
#ifndef INLAY_IO_TEMPLATE_SORT_H_
#define INLAY_IO_TEMPLATE_SORT_H_

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "io/template/budget.h"
#include "io/template/value.h"

namespace inlay::jinja {

// The indices of `keys` in ascending order, or in descending order where equal ones stay in order.
absl::StatusOr<std::vector<size_t>> SortedOrder(Budget& budget, const Values& keys, bool reverse);

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_SORT_H_
