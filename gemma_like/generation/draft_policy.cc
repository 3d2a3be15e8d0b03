#include "gemma_like/generation/draft_policy.h"

#include <algorithm>
#include <cassert>

namespace inlay {
namespace {

// Prior: kAssumed tries per bucket, accepted at (1 + p) / 2.
constexpr double kAssumed = 4;
// Counts are halved beyond this, so that a change of the text shows.
constexpr double kMostCounted = 64;
// Divides them at a rest.
constexpr double kForgotten = 4;
// In passes of the model: so much may be lost before a rest, and as much gained counts against
// later losses.
constexpr double kMostLost = 4;
constexpr size_t kFirstRest = 32;  // tokens
constexpr size_t kLongestRest = 512;

}  // namespace

size_t DraftPolicy::BucketOf(double probability) {
  const double at = std::clamp(probability, 0.0, 1.0) * kBuckets;
  return std::min(static_cast<size_t>(at), kBuckets - 1);
}

double DraftPolicy::Acceptance(size_t bucket) const {
  const double expected = 0.5 + (static_cast<double>(bucket) + 0.5) / kBuckets / 2;
  const Bucket& counted = buckets_[bucket];
  return (counted.accepted + kAssumed * expected) / (counted.tried + kAssumed);
}

bool DraftPolicy::Begin() {
  draft_.clear();
  reached_ = 1;
  passes_ = 0;
  if (rest_ == 0) return true;
  --rest_;
  return false;
}

bool DraftPolicy::Add(double probability) {
  passes_ += 1;
  const size_t bucket = BucketOf(probability);
  const double reached = reached_ * Acceptance(bucket);
  if (reached < costs_.row) return false;
  reached_ = reached;
  draft_.push_back(bucket);
  return true;
}

bool DraftPolicy::GoesOn() const {
  const double usual = (all_.accepted + kAssumed / 2) / (all_.tried + kAssumed);
  return reached_ * usual > costs_.pass + costs_.row;
}

void DraftPolicy::Age(Bucket& bucket, double divisor) {
  bucket.tried /= divisor;
  bucket.accepted /= divisor;
}

void DraftPolicy::Learn(size_t accepted) {
  if (passes_ == 0) return;  // it rested
  assert(accepted <= draft_.size());
  const auto count = [](Bucket& bucket, bool right) {
    bucket.tried += 1;
    bucket.accepted += right ? 1 : 0;
    if (bucket.tried > kMostCounted) Age(bucket, 2);
  };
  // Nobody knows what would have become of those after the first that was wrong.
  for (size_t i = 0; i < std::min(accepted + 1, draft_.size()); ++i) {
    count(buckets_[draft_[i]], i < accepted);
    count(all_, i < accepted);
  }
  balance_ += static_cast<double>(accepted) - passes_ * costs_.pass -
              static_cast<double>(draft_.size()) * costs_.row;
  draft_.clear();
  passes_ = 0;
  if (balance_ > kMostLost) {
    balance_ = kMostLost;
    last_rest_ = 0;
  } else if (balance_ < -kMostLost) {
    rest_ = last_rest_ = std::clamp(2 * last_rest_, kFirstRest, kLongestRest);
    balance_ = 0;
    // The text may be another one afterwards.
    for (Bucket& bucket : buckets_) Age(bucket, kForgotten);
    Age(all_, kForgotten);
  }
}

}  // namespace inlay
