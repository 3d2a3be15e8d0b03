// Memory that conversations may need, promised before they need it.
#ifndef INLAY_SERVE_SCHEDULER_MEMORY_BUDGET_H_
#define INLAY_SERVE_SCHEDULER_MEMORY_BUDGET_H_

#include <cassert>
#include <cstddef>

#include "cache/cache_bytes.h"

namespace inlay::serve {

// The sum of what running conversations may need never exceeds the limit. Snapshots are not
// counted: they are evicted where a conversation needs their memory.
class MemoryBudget {
 public:
  // `plan`: of one conversation; `row_bytes`: of one row of logits.
  MemoryBudget(size_t limit_bytes, const CacheBytes& plan, size_t row_bytes)
      : limit_(limit_bytes), plan_(plan), row_bytes_(row_bytes) {}

  // Bytes that a conversation of at most `length` tokens may need: its rows and states, what an
  // open append adds, copies of what it shares with a snapshot, and the `rows` of logits of a step.
  size_t BytesFor(size_t length, size_t rows) const {
    return plan_.At(length) + plan_.append + plan_.snapshot + rows * row_bytes_;
  }

  // Upper bound of what one append of `tokens` tokens adds to the bytes in use.
  size_t BytesToAppend(size_t tokens) const {
    const size_t blocks = (tokens + kKvBlockRows - 1) / kKvBlockRows + 1;
    return plan_.append + plan_.snapshot + blocks * (plan_.per_block + plan_.ring_block);
  }

  // The longest conversation, up to `most` tokens, that fits when it is alone with `rows` rows of
  // logits in a step; 0 when none does.
  size_t LongestAlone(size_t most, size_t rows) const {
    size_t fits = 0, too_long = most + 1;
    while (too_long - fits > 1) {
      const size_t middle = fits + (too_long - fits) / 2;
      (BytesFor(middle, rows) <= limit_ ? fits : too_long) = middle;
    }
    return fits;
  }

  // The most rows of logits in a step, up to `most`, with which a conversation of this length fits
  // when it is alone; 0 when it does not even without any.
  size_t MostRowsAlone(size_t length, size_t most) const {
    while (most > 0 && BytesFor(length, most) > limit_) --most;
    return most;
  }

  // Promises memory; false, without any change, when there is too little.
  bool Reserve(size_t bytes) {
    if (bytes > limit_ - reserved_) return false;
    reserved_ += bytes;
    return true;
  }
  void Release(size_t bytes) {
    assert(bytes <= reserved_);
    reserved_ -= bytes;
  }

  size_t reserved() const { return reserved_; }
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  const CacheBytes plan_;
  const size_t row_bytes_;
  size_t reserved_ = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SCHEDULER_MEMORY_BUDGET_H_
