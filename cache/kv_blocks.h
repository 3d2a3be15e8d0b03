// The stored keys and values of one attention layer in one conversation.
#ifndef INLAY_CACHE_KV_BLOCKS_H_
#define INLAY_CACHE_KV_BLOCKS_H_

#include <cstddef>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/block_pool.h"
#include "cache/serialize.h"
#include "cache/storage.h"
#include "ops/attention/attention.h"

namespace inlay {

// A table of KV blocks: position p is stored in block p / kKvBlockRows. With full attention the
// table grows with the sequence; with a sliding window it is a ring of `ring_blocks` slots whose
// oldest block is overwritten. A position determines its slot, so no search is needed and nothing
// can fragment. Copying shares all blocks; a shared block is copied before it is written.
class KvBlocks {
 public:
  KvBlocks() = default;
  // `window` 0: full attention, and ring_blocks is not used.
  KvBlocks(const KvShape& shape, size_t window, size_t ring_blocks);

  // How many ring slots a window needs: after an append of up to max_append rows, aborted or not, a
  // rewind by up to `rewind` must still find the window - 1 rows before its target. One slot more
  // than these rows fill, because the oldest and the newest block may be partly used.
  static constexpr size_t RingBlocks(size_t window, size_t max_append, size_t rewind) {
    return (window - 1 + max_append - 1 + rewind + kKvBlockRows - 1) / kKvBlockRows + 1;
  }

  // How many blocks have the rows that the next token attends to beside its own.
  static constexpr size_t WindowBlocks(size_t window) {
    return window < 2 ? 0 : (window - 2 + kKvBlockRows - 1) / kKvBlockRows + 1;
  }

  absl::Status Prepare(BlockPool& pool, size_t length, size_t count);
  void Commit(size_t) {}
  void Abort(size_t length) { Truncate(length); }
  // With full attention, also returns the blocks past the new end to the pool.
  void Truncate(size_t length);
  // With a sliding window, returns the blocks in which no row is needed.
  void Trim(BlockPool&, size_t length, size_t rewind);
  size_t RewindFloor() const;
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const;
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind);
  void VisitBlocks(BlockVisitor visit) const;

  // For the attention op; valid until the next call that is not const.
  KvView view() const { return {shape_, pointers_.data(), pointers_.size()}; }

 private:
  size_t Slot(size_t block) const { return window_ == 0 ? block : block % blocks_.size(); }
  // The lowest position whose row is kept.
  size_t FirstRow() const;
  // The first row that the tokens from `position` on attend to.
  size_t FirstSeenFrom(size_t position) const;
  // Allocates a new block for the slot of `block`, which is empty or shared, and returns the old
  // one.
  absl::StatusOr<BlockRef> Renew(BlockPool& pool, size_t block);
  template <class F>
  absl::Status ForEachRun(size_t from, size_t to, F f) const;

  KvShape shape_;
  size_t window_ = 0;
  // Rows below it have been prepared for writing at some time, and may have been written.
  size_t high_water_ = 0;
  size_t kept_from_ = 0;  // rows below it were trimmed, or not in the saved conversation
  std::vector<BlockRef> blocks_;
  std::vector<void*> pointers_;  // blocks_[i].data(), in the form that KvView needs
};

}  // namespace inlay

#endif  // INLAY_CACHE_KV_BLOCKS_H_
