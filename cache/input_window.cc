#include "cache/input_window.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {

absl::Status InputWindow::Prepare(BlockPool& pool, size_t length, size_t count) {
  assert(!pending_);
  append_end_ = length + count;
  if (count == 0) return absl::OkStatus();
  if (count > kShort) {
    INLAY_ASSIGN_OR_RETURN(pending_, pool.AllocateFor(length, BlockBytes(capacity())));
    const size_t first_kept = append_end_ - std::min(append_end_, kept());
    pending_first_ = std::min(std::max(FirstRow(), first_kept), length);
    CopyRows(pending_first_, length, pending_, capacity());
    return absl::OkStatus();
  }
  if (ring_rows_ < capacity() || !ring_.unique()) {
    INLAY_ASSIGN_OR_RETURN(BlockRef fresh, pool.AllocateFor(length, BlockBytes(capacity())));
    KeepLast(kept(), length);
    MoveTo(std::move(fresh), capacity());
  }
  high_water_ = std::max(high_water_, append_end_);
  return absl::OkStatus();
}

void InputWindow::Trim(BlockPool& pool, size_t length, size_t rewind) {
  assert(!pending_);
  const size_t rows = tail_ + std::min(rewind, capacity());
  if (!ring_ || rows >= ring_rows_) return;
  KeepLast(rows, length);
  BlockRef smaller = pool.Allocate(BlockBytes(rows));
  if (smaller) MoveTo(std::move(smaller), rows);
}

void InputWindow::KeepLast(size_t rows, size_t length) {
  first_row_ = std::max(FirstRow(), length - std::min(length, rows));
  high_water_ = length;
}

void InputWindow::MoveTo(BlockRef block, size_t rows) {
  CopyRows(first_row_, high_water_, block, rows);
  ring_ = std::move(block);
  ring_rows_ = rows;
}

void InputWindow::CopyRows(size_t from, size_t to, const BlockRef& block, size_t rows) const {
  for (size_t position = from; position < to; ++position) {
    std::copy_n(Row(position), dim_, RowIn(block, rows, position));
  }
}

void InputWindow::Commit(size_t length) {
  if (!pending_) return;
  assert(length == append_end_);
  ring_ = std::move(pending_);
  ring_rows_ = capacity();
  pending_ = BlockRef();
  first_row_ = pending_first_;
  high_water_ = length;
}

void InputWindow::Abort(size_t) { pending_ = BlockRef(); }

size_t InputWindow::FirstRow() const {
  return std::max(first_row_, high_water_ - std::min(high_water_, capacity()));
}

size_t InputWindow::RewindFloor() const {
  const size_t first = FirstRow();
  return first == 0 ? 0 : first + tail_;
}

template <class F>
absl::Status InputWindow::ForEachRun(size_t from, size_t to, F f) const {
  absl::Status status;
  for (size_t position = from; position < to && status.ok();) {
    const size_t rows = std::min(to - position, ring_rows_ - position % ring_rows_);
    status = f(RowIn(ring_, ring_rows_, position), BlockBytes(rows));
    position += rows;
  }
  return status;
}

absl::Status InputWindow::Save(SectionWriter& writer, size_t length, size_t rewind) const {
  const size_t from = std::max(FirstRow(), length - std::min(length, rewind + tail_));
  absl::Status status = writer.AppendUint(from);
  if (status.ok()) status = writer.AppendUint(BlockBytes(length - from));
  if (!status.ok()) return status;
  return ForEachRun(from, length, [&](const float* memory, size_t bytes) {
    return writer.Append(memory, bytes);
  });
}

absl::Status InputWindow::Load(SectionReader& reader, BlockPool& pool, size_t length,
                               size_t rewind) {
  const absl::StatusOr<uint64_t> from = reader.ReadUint();
  if (!from.ok()) return from.status();
  const size_t least = length - std::min(length, std::min(rewind, rewind_) + tail_);
  const size_t most = length - std::min(length, tail_);
  if (*from < least || *from > most) {
    return reader.Damaged(absl::StrCat("its inputs begin at position ", *from, ", not between ",
                                       least, " and ", most));
  }
  INLAY_RETURN_IF_ERROR(reader.ReadSize(BlockBytes(length - *from)));
  InputWindow loaded(dim_, tail_, rewind_);
  if (*from < length) {
    INLAY_ASSIGN_OR_RETURN(loaded.ring_, pool.AllocateFor(*from, BlockBytes(capacity())));
  }
  loaded.ring_rows_ = capacity();
  loaded.first_row_ = *from;
  loaded.high_water_ = length;
  absl::Status status = loaded.ForEachRun(
      *from, length, [&](float* memory, size_t bytes) { return reader.Read(memory, bytes); });
  if (status.ok()) *this = std::move(loaded);
  return status;
}

void InputWindow::VisitBlocks(BlockVisitor visit) const {
  if (ring_) visit(ring_.data(), BlockBytes(ring_rows_));
  if (pending_) visit(pending_.data(), BlockBytes(capacity()));
}

}  // namespace inlay
