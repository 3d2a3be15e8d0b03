#include "gemma_like/generation/draft_times.h"

#include <algorithm>

namespace inlay {
namespace {

constexpr size_t kFewest = 3;        // samples from which a mean is known
constexpr double kMeanOver = 16;     // a new sample's weight in the mean is at least 1 / kMeanOver
constexpr double kOutlierTimes = 3;  // times the mean

// The least that a row and a pass are taken to cost, whatever the clock says.
constexpr double kLeastCost = 0.01;

}  // namespace

void DraftTimes::Mean::Add(double sample) {
  ++count;
  if (known()) sample = std::min(sample, kOutlierTimes * value);
  value += (sample - value) / std::min(static_cast<double>(count), kMeanOver);
}

bool DraftTimes::Mean::known() const { return count > kFewest; }

void DraftTimes::ModelPass(double seconds, size_t rows) {
  if (rows == 1) return one_.Add(seconds);
  if (one_.known()) row_.Add(std::max(0.0, seconds - one_.value) / static_cast<double>(rows - 1));
}

void DraftTimes::DraftPass(double seconds) { draft_.Add(seconds); }

DraftCosts DraftTimes::CostsOr(const DraftCosts& assumed) const {
  if (!one_.known() || one_.value <= 0) return assumed;
  const auto cost = [&](const Mean& seconds, double otherwise) {
    return seconds.known() ? std::max(kLeastCost, seconds.value / one_.value) : otherwise;
  };
  return {.pass = cost(draft_, assumed.pass), .row = cost(row_, assumed.row)};
}

}  // namespace inlay
