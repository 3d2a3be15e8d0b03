// A drafter whose tokens are accepted as often as a test wants.
#ifndef INLAY_TESTS_GEMMA_LIKE_CHANCE_DRAFTER_H_
#define INLAY_TESTS_GEMMA_LIKE_CHANCE_DRAFTER_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/generation/speculate.h"

namespace inlay {

// Drafts the true continuation, except where chance says otherwise.
class ChanceDrafter final : public Drafter {
 public:
  ChanceDrafter(const std::vector<int32_t>& truth, double right, size_t vocab_size, uint64_t seed)
      : truth_(truth), right_(right), vocab_size_(vocab_size), random_(seed) {}

  std::vector<int32_t> Draft(absl::Span<const int32_t> tokens, size_t most) override {
    std::vector<int32_t> draft;
    const size_t count = random_() % (most + 1);
    for (size_t at = tokens.size(); draft.size() < count && at < truth_.size(); ++at) {
      const bool right = std::uniform_real_distribution<double>()(random_) < right_;
      draft.push_back(right ? truth_[at] : static_cast<int32_t>(random_() % vocab_size_));
    }
    return draft;
  }

 private:
  const std::vector<int32_t>& truth_;
  double right_;
  size_t vocab_size_;
  std::mt19937_64 random_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_CHANCE_DRAFTER_H_
