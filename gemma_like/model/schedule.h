// The products of a forward pass in their order, known since the model is loaded.
#ifndef INLAY_GEMMA_LIKE_MODEL_SCHEDULE_H_
#define INLAY_GEMMA_LIKE_MODEL_SCHEDULE_H_

#include <cstddef>
#include <initializer_list>
#include <vector>

#include "ops/matmul/matmul.h"

namespace inlay {

// Which weights each thread reads next is fixed by the config: while threads wait for the end of a
// product, or for what one thread computes alone, they fetch the beginning of theirs.
class Schedule {
 public:
  explicit Schedule(size_t threads) : threads_(threads) {}

  // The next product, all of its matrices; none where tokens choose them. The matrices outlive the
  // schedule.
  void Add(std::initializer_list<const PackedMatrix*> matrices) {
    products_.emplace_back(matrices, threads_);
  }

  // Follows one pass through the products.
  class Cursor {
   public:
    explicit Cursor(const Schedule& schedule) : products_(schedule.products_) {}

    // What comes after the product that begins with `first`; after the last one, the first one of
    // the next pass. nullptr where that is not known.
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
