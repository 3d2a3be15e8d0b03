#include "io/template/sort.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "io/template/operators.h"

namespace inlay::jinja {

// A merge sort of our own: std::stable_sort cannot stop at an error.
absl::StatusOr<std::vector<size_t>> SortedOrder(Budget& budget, const Values& keys, bool reverse) {
  std::vector<size_t> order(keys.size()), merged(keys.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (size_t width = 1; width < order.size(); width *= 2) {
    for (size_t begin = 0; begin < order.size(); begin += 2 * width) {
      const size_t middle = std::min(begin + width, order.size());
      const size_t end = std::min(begin + 2 * width, order.size());
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        bool take_left = right == end;
        if (!take_left && left < middle) {
          INLAY_ASSIGN_OR_RETURN(const int sign,
                                 Order(budget, keys[order[right]], keys[order[left]]));
          take_left = reverse ? sign <= 0 : sign >= 0;
        }
        merged[out] = take_left ? order[left++] : order[right++];
      }
    }
    std::swap(order, merged);
  }
  return order;
}

}  // namespace inlay::jinja
