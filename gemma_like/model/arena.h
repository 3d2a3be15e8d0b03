// Scratch memory for activations: one allocation, handed out front to back and released all at
// once.
#ifndef INLAY_GEMMA_LIKE_MODEL_ARENA_H_
#define INLAY_GEMMA_LIKE_MODEL_ARENA_H_

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

#include "ops/views.h"

namespace inlay {

class Arena {
 public:
  static constexpr size_t kAlignment = 64;  // bytes: a cache line, and the widest vector

  // Floats that Rows(rows, cols) allocates.
  static constexpr size_t Floats(size_t rows, size_t cols) {
    constexpr size_t kUnit = kAlignment / sizeof(float);
    return (rows * cols + kUnit - 1) / kUnit * kUnit;
  }

  explicit Arena(size_t floats)
      : capacity_(floats), data_(new (std::align_val_t(kAlignment)) float[floats]) {}

  // Uninitialised rows, valid until the enclosing Scope ends. Asking for more than the capacity is
  // a programmer error: the creator of the arena adds up what its users need.
  FloatRows Rows(size_t rows, size_t cols) {
    float* data = data_.get() + used_;
    used_ += Floats(rows, cols);
    assert(used_ <= capacity_);
    return FloatRows(data, rows, cols);
  }

  // The same as plain memory, for ops that lay out theirs.
  float* Memory(size_t floats) { return Rows(1, floats).data; }

  // Likewise, uninitialised integers; they need as much memory as Rows(1, count).
  int32_t* Ints(size_t count) {
    static_assert(sizeof(int32_t) == sizeof(float) && alignof(int32_t) == alignof(float));
    return new (Rows(1, count).data) int32_t[count];
  }

  // Releases, when it ends, everything handed out since it began.
  class Scope {
   public:
    explicit Scope(Arena& arena) : arena_(arena), used_(arena.used_) {}
    ~Scope() { arena_.used_ = used_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Arena& arena_;
    const size_t used_;
  };

 private:
  struct Free {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t(kAlignment)); }
  };

  [[maybe_unused]] const size_t capacity_;  // read by assertions only
  size_t used_ = 0;
  std::unique_ptr<float[], Free> data_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_ARENA_H_
