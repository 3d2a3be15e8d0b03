#include "cache/kv_blocks.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace inlay {

KvBlocks::KvBlocks(const KvShape& shape, size_t window, size_t ring_blocks)
    : shape_(shape), window_(window) {
  if (window_ != 0) {
    blocks_.resize(ring_blocks);
    pointers_.resize(ring_blocks);
  }
}

absl::Status KvBlocks::Prepare(BlockPool& pool, size_t length, size_t count) {
  if (count == 0) return absl::OkStatus();
  const size_t last = (length + count - 1) / kKvBlockRows;
  if (window_ == 0 && last >= blocks_.size()) {
    blocks_.resize(last + 1);
    pointers_.resize(last + 1);
  }
  for (size_t block = length / kKvBlockRows; block <= last; ++block) {
    BlockRef& slot = blocks_[Slot(block)];
    // Also when a later block fails: from here on the slot no longer holds its previous rows.
    high_water_ = std::max(high_water_, std::min(length + count, (block + 1) * kKvBlockRows));
    if (slot.unique()) continue;
    BlockRef fresh = pool.Allocate(shape_.BlockBytes());
    if (!fresh) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the cache needs a block of ", shape_.BlockBytes(), " bytes for position ",
                       block * kKvBlockRows, " but ", pool.used_bytes(), " of ", pool.limit_bytes(),
                       " bytes are in use"));
    }
    // Only the block that `length` lies in holds rows that are still wanted.
    if (slot && block * kKvBlockRows < length)
      std::memcpy(fresh.data(), slot.data(), shape_.BlockBytes());
    slot = std::move(fresh);
    pointers_[Slot(block)] = slot.data();
  }
  return absl::OkStatus();
}

void KvBlocks::Truncate(size_t length) {
  if (window_ != 0) return;  // a ring keeps its blocks: its size is constant
  const size_t used = (length + kKvBlockRows - 1) / kKvBlockRows;
  if (used < blocks_.size()) {
    blocks_.resize(used);
    pointers_.resize(used);
  }
}

size_t KvBlocks::RewindFloor() const {
  if (window_ == 0 || high_water_ == 0) return 0;
  const size_t newest = (high_water_ - 1) / kKvBlockRows;
  if (newest < blocks_.size()) return 0;  // nothing has been overwritten yet
  const size_t oldest_row = (newest - blocks_.size() + 1) * kKvBlockRows;
  return oldest_row + window_ - 1;
}

size_t KvBlocks::allocated_bytes() const {
  return static_cast<size_t>(
             std::count_if(blocks_.begin(), blocks_.end(),
                           [](const BlockRef& b) { return static_cast<bool>(b); })) *
         shape_.BlockBytes();
}

}  // namespace inlay
