// The products of a forward pass in their order, known once the model is loaded.
#ifndef INLAY_GEMMA_LIKE_MODEL_SCHEDULE_H_
#define INLAY_GEMMA_LIKE_MODEL_SCHEDULE_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "ops/matmul/matmul.h"

namespace inlay {

// The config fixes which weights each thread reads next: while threads wait for the end of a
// product, or for what one thread computes alone, they prefetch the start of their next share.
class Schedule {
 public:
  explicit Schedule(size_t threads) : threads_(threads) {}

  // Adds the next product, with all of its matrices; an empty list if tokens choose them (experts).
  // The matrices must outlive the schedule.
  void Add(std::vector<const PackedMatrix*> matrices) {
    products_.emplace_back(std::move(matrices), threads_);
  }

  // Follows one pass through the products.
  class Cursor {
   public:
    explicit Cursor(const Schedule& schedule) : products_(schedule.products_) {}

    // The product after the one whose first matrix is `first`; after the last one, the first one of
    // the next pass. nullptr if it is not known.
    const PhaseAhead* After(const PackedMatrix* first) {
      for (size_t i = 0; i < products_.size(); ++i) {
        const size_t product = (next_ + i) % products_.size();
        if (!products_[product].BeginsWith(first)) continue;
        next_ = (product + 1) % products_.size();
        return &products_[next_];
      }
      return nullptr;
    }

   private:
    const std::vector<MatMulAhead>& products_;
    size_t next_ = 0;
  };

 private:
  const size_t threads_;
  std::vector<MatMulAhead> products_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_SCHEDULE_H_
