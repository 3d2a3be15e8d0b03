#include "ops/pooling.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstddef>

namespace inlay {

void MeanOfRows(ConstFloatRows x, float* mean) {
  assert(x.rows > 0);
  constexpr size_t kColumns = 64;  // at once: rows are read in whole cache lines
  for (size_t first = 0; first < x.cols; first += kColumns) {
    const size_t columns = std::min(kColumns, x.cols - first);
    std::array<double, kColumns> sums{};
    for (size_t r = 0; r < x.rows; ++r) {
      const float* const row = x.Row(r) + first;
      for (size_t c = 0; c < columns; ++c) sums[c] += row[c];
    }
    for (size_t c = 0; c < columns; ++c) {
      mean[first + c] = static_cast<float>(sums[c] / static_cast<double>(x.rows));
    }
  }
}

void ScaleToLength1(FloatRows x) {
  for (size_t r = 0; r < x.rows; ++r) {
    float* const row = x.Row(r);
    double sum = 0;
    for (size_t c = 0; c < x.cols; ++c) sum += static_cast<double>(row[c]) * row[c];
    if (sum == 0) continue;
    const double scale = 1 / std::sqrt(sum);
    for (size_t c = 0; c < x.cols; ++c) row[c] = static_cast<float>(row[c] * scale);
  }
}

}  // namespace inlay
