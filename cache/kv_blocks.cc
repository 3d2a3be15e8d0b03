#include "cache/kv_blocks.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {
namespace {

constexpr size_t RowBytes(const KvShape& shape) { return shape.BlockBytes() / kKvBlockRows; }

}  // namespace

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
    // Raised even if a later block cannot be allocated: from here on this slot no longer holds its
    // previous rows.
    high_water_ = std::max(high_water_, std::min(length + count, (block + 1) * kKvBlockRows));
    if (slot.unique()) continue;
    absl::StatusOr<BlockRef> old = Renew(pool, block);
    if (!old.ok()) return old.status();
    // Only the block that contains `length` holds rows that are still needed.
    if (*old && block * kKvBlockRows < length)
      std::memcpy(slot.data(), old->data(), shape_.BlockBytes());
  }
  return absl::OkStatus();
}

absl::StatusOr<BlockRef> KvBlocks::Renew(BlockPool& pool, size_t block) {
  INLAY_ASSIGN_OR_RETURN(BlockRef fresh,
                         pool.AllocateFor(block * kKvBlockRows, shape_.BlockBytes()));
  pointers_[Slot(block)] = fresh.data();
  return std::exchange(blocks_[Slot(block)], std::move(fresh));
}

void KvBlocks::Truncate(size_t length) {
  if (length == 0) high_water_ = kept_from_ = 0;
  if (window_ != 0) return;  // a ring keeps its blocks: its size is constant
  const size_t used = (length + kKvBlockRows - 1) / kKvBlockRows;
  if (used < blocks_.size()) {
    blocks_.resize(used);
    pointers_.resize(used);
  }
}

void KvBlocks::Trim(BlockPool&, size_t length, size_t rewind) {
  if (window_ == 0) return;
  kept_from_ = std::max(FirstRow(), FirstSeenFrom(length - std::min(length, rewind)));
  const size_t first = kept_from_ / kKvBlockRows;
  const size_t end = (length + kKvBlockRows - 1) / kKvBlockRows;
  // The ring's slots, beginning with that of the first block.
  for (size_t block = end; block < first + blocks_.size(); ++block) {
    blocks_[Slot(block)] = BlockRef();
    pointers_[Slot(block)] = nullptr;
  }
}

size_t KvBlocks::FirstRow() const {
  if (window_ == 0 || high_water_ == 0) return 0;
  const size_t newest = (high_water_ - 1) / kKvBlockRows;
  if (newest < blocks_.size()) return kept_from_;  // nothing has been overwritten yet
  return std::max(kept_from_, (newest - blocks_.size() + 1) * kKvBlockRows);
}

size_t KvBlocks::FirstSeenFrom(size_t position) const {
  return window_ == 0 ? 0 : position - std::min(position, window_ - 1);
}

size_t KvBlocks::RewindFloor() const {
  const size_t first = FirstRow();
  return first == 0 ? 0 : first + window_ - 1;
}

// Calls f(memory, bytes) for each contiguous run of memory in the rows [from, to), in an order that
// depends only on the rows, until one returns an error.
template <class F>
absl::Status KvBlocks::ForEachRun(size_t from, size_t to, F f) const {
  const size_t dim = shape_.head_dim;
  const size_t element = KvTypeBytes(shape_.type);
  const size_t scale = KvScaleBytes(shape_.type);
  for (size_t position = from; position < to;) {
    auto* const memory = static_cast<uint8_t*>(pointers_[Slot(position / kKvBlockRows)]);
    const size_t first = position % kKvBlockRows;
    const size_t rows = std::min(to - position, kKvBlockRows - first);
    absl::Status status;
    if (rows == kKvBlockRows) {
      status = f(memory, shape_.BlockBytes());
    } else {
      const auto run = [&](uint8_t* from_memory, size_t bytes) {
        if (status.ok() && bytes > 0) status = f(from_memory, bytes);
      };
      // A block's keys are stored transposed; see KvShape.
      for (size_t head = 0; head < shape_.kv_heads; ++head) {
        uint8_t* const keys = memory + head * 2 * shape_.KeysOrValuesBytes();
        uint8_t* const values = keys + shape_.KeysOrValuesBytes();
        const size_t scales = kKvBlockRows * dim * element + first * scale;
        for (size_t d = 0; d < dim; ++d) {
          run(keys + (d * kKvBlockRows + first) * element, rows * element);
        }
        run(keys + scales, rows * scale);
        run(values + first * dim * element, rows * dim * element);
        run(values + scales, rows * scale);
      }
    }
    if (!status.ok()) return status;
    position += rows;
  }
  return absl::OkStatus();
}

absl::Status KvBlocks::Save(SectionWriter& writer, size_t length, size_t rewind) const {
  const size_t from = std::max(FirstRow(), FirstSeenFrom(length - std::min(length, rewind)));
  absl::Status status = writer.AppendUint(from);
  if (status.ok()) status = writer.AppendUint((length - from) * RowBytes(shape_));
  if (!status.ok()) return status;
  return ForEachRun(from, length, [&](const uint8_t* memory, size_t bytes) {
    return writer.Append(memory, bytes);
  });
}

absl::Status KvBlocks::Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind) {
  absl::StatusOr<uint64_t> from = reader.ReadUint();
  if (!from.ok()) return from.status();
  const size_t least = FirstSeenFrom(length - std::min(length, rewind));
  const size_t most = FirstSeenFrom(length);
  if (*from < least || *from > most) {
    return reader.Damaged(
        absl::StrCat("its rows begin at position ", *from, ", not between ", least, " and ", most));
  }
  absl::Status status = reader.ReadSize((length - *from) * RowBytes(shape_));
  if (!status.ok()) return status;

  KvBlocks loaded(shape_, window_, blocks_.size());
  loaded.high_water_ = length;
  loaded.kept_from_ = *from;
  const size_t end = (length + kKvBlockRows - 1) / kKvBlockRows;
  if (window_ == 0) {
    loaded.blocks_.resize(end);
    loaded.pointers_.resize(end);
  }
  for (size_t block = *from / kKvBlockRows; block < end; ++block) {
    if (absl::StatusOr<BlockRef> old = loaded.Renew(pool, block); !old.ok()) return old.status();
  }
  status = loaded.ForEachRun(
      *from, length, [&](uint8_t* memory, size_t bytes) { return reader.Read(memory, bytes); });
  if (status.ok()) *this = std::move(loaded);
  return status;
}

void KvBlocks::VisitBlocks(BlockVisitor visit) const {
  for (const BlockRef& block : blocks_) {
    if (block) visit(block.data(), shape_.BlockBytes());
  }
}

}  // namespace inlay
