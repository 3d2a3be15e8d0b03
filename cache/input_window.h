// The last inputs of a causal convolution in one sequence.
#ifndef INLAY_CACHE_INPUT_WINDOW_H_
#define INLAY_CACHE_INPUT_WINDOW_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "cache/block_pool.h"
#include "cache/cache_bytes.h"
#include "cache/serialize.h"
#include "cache/storage.h"

namespace inlay {

// A ring of rows, one per position; the token at position p reads the rows p - tail to p. The last
// kept() rows stay available, so that a rewind by up to `rewind` tokens finds those that it needs.
// The ring has room for kShort more (capacity()), so an aborted append of up to kShort rows has
// overwritten none of them. A longer append writes its last rows into a second ring, which gets a
// copy of the rows before them that are still needed, and replaces the first one on commit. After
// Trim the ring has room for the rows that it holds alone, and the next append replaces it.
class InputWindow {
 public:
  InputWindow() = default;
  // Rows of `dim` floats; `tail` is the convolution's width - 1.
  InputWindow(size_t dim, size_t tail, size_t rewind) : dim_(dim), tail_(tail), rewind_(rewind) {}

  // Rows of an append that needs no second ring: a token and the most that are drafted after it.
  static constexpr size_t kShort = 17;

  static constexpr size_t BlockBytes(size_t dim, size_t tail, size_t rewind) {
    return (tail + rewind + kShort) * dim * sizeof(float);
  }
  // Upper bounds: the ring, a second one during a long append, and the copy after a fork.
  static constexpr CacheBytes Bytes(size_t dim, size_t tail, size_t rewind) {
    const size_t ring = BlockBytes(dim, tail, rewind);
    return {
        .constant = ring, .append = ring, .snapshot = ring, .trimmed = tail * dim * sizeof(float)};
  }

  absl::Status Prepare(BlockPool& pool, size_t length, size_t count);
  void Commit(size_t length);
  void Abort(size_t length);
  void Truncate(size_t length) {
    if (length == 0) first_row_ = high_water_ = 0;
  }
  void Trim(BlockPool& pool, size_t length, size_t rewind);
  size_t RewindFloor() const;
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const;
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind);
  void VisitBlocks(BlockVisitor visit) const;

  // The row of a position, which must not be below RewindFloor() - tail; [dim].
  const float* Row(size_t position) const { return RowIn(ring_, ring_rows_, position); }
  // Between Prepare and Commit or Abort: where to write the row of a new position; nullptr when a
  // later row of the same append would overwrite it.
  float* NewRow(size_t position) const {
    if (!pending_) return RowIn(ring_, ring_rows_, position);
    return position + capacity() < append_end_ ? nullptr : RowIn(pending_, capacity(), position);
  }

 private:
  size_t kept() const { return tail_ + rewind_; }
  size_t capacity() const { return kept() + kShort; }
  size_t BlockBytes(size_t rows) const { return rows * dim_ * sizeof(float); }
  // The lowest position whose row is kept.
  size_t FirstRow() const;
  float* RowIn(const BlockRef& block, size_t rows, size_t position) const {
    return static_cast<float*>(block.data()) + position % rows * dim_;
  }
  // Of a sequence of this length, no more than the last `rows` are needed.
  void KeepLast(size_t rows, size_t length);
  // Makes `block`, of so many rows, the ring, with a copy of the rows that are needed.
  void MoveTo(BlockRef block, size_t rows);
  // Copies the rows [from, to) of the ring into a block of so many rows.
  void CopyRows(size_t from, size_t to, const BlockRef& block, size_t rows) const;
  // Calls f(memory, bytes) for the pieces of memory that hold the rows [from, to).
  template <class F>
  absl::Status ForEachRun(size_t from, size_t to, F f) const;

  size_t dim_ = 0;
  size_t tail_ = 0;
  size_t rewind_ = 0;
  size_t first_row_ = 0;   // rows below it were never in this ring
  size_t high_water_ = 0;  // rows below it have been prepared for writing in this ring at some time
  size_t append_end_ = 0;  // of the last Prepare
  size_t pending_first_ = 0;  // first_row_ of pending_
  size_t ring_rows_ = 0;      // of ring_: capacity(), or fewer after Trim
  BlockRef ring_;             // [ring_rows, dim], the row of position p at p % ring_rows
  BlockRef pending_;  // the second ring, of capacity() rows, during an append longer than kShort
};

}  // namespace inlay

#endif  // INLAY_CACHE_INPUT_WINDOW_H_
