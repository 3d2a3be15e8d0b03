#include "cache/chunk_log.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace inlay {

absl::Status ChunkLogBase::MakeLogWritable(BlockPool& pool, size_t rows_used) {
  BlockRef& log = kept_.logs[chunk_ % kKept];
  if (log.unique()) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(BlockRef fresh, pool.AllocateFor(chunk_ * kStateChunk, shape_.LogBytes()));
  if (log) {
    const auto* from = static_cast<const float*>(log.data());
    auto* to = static_cast<float*>(fresh.data());
    for (size_t i = 0; i < shape_.columns; ++i) {
      std::copy_n(from, rows_used * shape_.widths[i], to);
      from += kStateChunk * shape_.widths[i];
      to += kStateChunk * shape_.widths[i];
    }
  }
  log = std::move(fresh);
  return absl::OkStatus();
}

absl::Status ChunkLogBase::Prepare(BlockPool& pool, size_t length, size_t count) {
  assert(length / kStateChunk == chunk_);
  if (count == 0) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(MakeLogWritable(pool, length % kStateChunk));
  // Of the chunks that the append crosses only the last two are kept, so two sets of blocks, used
  // in turn, are enough: when the state at the start of chunk k + 1 is computed, the state and log
  // of chunk k - 1 are no longer needed.
  const size_t last_boundary = (length + count) / kStateChunk;
  const size_t last_log = (length + count - 1) / kStateChunk;
  const size_t end = std::min(chunk_ + kKept, last_boundary);
  for (size_t chunk = chunk_ + 1; chunk <= end; ++chunk) {
    const size_t start = chunk * kStateChunk;
    INLAY_ASSIGN_OR_RETURN(pending_.states[chunk % kKept],
                           pool.AllocateFor(start, shape_.state_bytes));
    if (chunk > last_log) continue;
    INLAY_ASSIGN_OR_RETURN(pending_.logs[chunk % kKept],
                           pool.AllocateFor(start, shape_.LogBytes()));
  }
  return absl::OkStatus();
}

void ChunkLogBase::Commit(size_t length) {
  const size_t chunk = length / kStateChunk;
  assert(chunk >= chunk_);
  if (chunk == chunk_) return;
  const size_t previous = chunk - 1;
  // The previous chunk was either kept already (and stays in its slot) or is pending, like the
  // current one.
  for (size_t k = std::max(previous, chunk_ + 1); k <= chunk; ++k) {
    kept_.states[k % kKept] = std::move(pending_.states[k % kKept]);
    kept_.logs[k % kKept] = std::move(pending_.logs[k % kKept]);
  }
  chunk_ = chunk;
  has_previous_ = true;
  pending_ = Slots();
}

void ChunkLogBase::Abort(size_t) { pending_ = Slots(); }

void ChunkLogBase::Truncate(size_t length) {
  assert(length == 0 || length >= RewindFloor());
  const size_t chunk = length / kStateChunk;
  if (chunk == chunk_) return;
  if (length == 0) {
    kept_ = Slots();
  } else {
    assert(has_previous_ && chunk + 1 == chunk_);
    kept_.states[chunk_ % kKept] = BlockRef();
    kept_.logs[chunk_ % kKept] = BlockRef();
  }
  chunk_ = chunk;
  has_previous_ = false;
}

void ChunkLogBase::Trim(BlockPool&, size_t length, size_t rewind) {
  assert(length / kStateChunk == chunk_);
  if (!has_previous_ || length % kStateChunk < rewind) return;
  kept_.states[(chunk_ - 1) % kKept] = BlockRef();
  kept_.logs[(chunk_ - 1) % kKept] = BlockRef();
  has_previous_ = false;
}

size_t ChunkLogBase::RewindFloor() const {
  return (has_previous_ ? chunk_ - 1 : chunk_) * kStateChunk;
}

namespace {

// How many rows of a chunk's log a sequence of this length may still read. The last row of a chunk
// before the current one is not among them: after a rewind into that chunk it is written again
// before it is read.
size_t LiveLogRows(size_t chunk, size_t length) {
  return chunk < length / kStateChunk ? kStateChunk - 1 : length % kStateChunk;
}

}  // namespace

uint64_t ChunkLogBase::SavedBytes(size_t length) const {
  uint64_t bytes = 0;
  for (size_t chunk = RewindFloor() / kStateChunk; chunk <= chunk_; ++chunk) {
    bytes += chunk > 0 ? shape_.state_bytes : 0;
    bytes += LiveLogRows(chunk, length) * shape_.RowFloats() * sizeof(float);
  }
  return bytes;
}

// Calls f(memory, bytes) for each contiguous run of memory that is saved, until one returns an
// error.
template <class F>
absl::Status ChunkLogBase::ForEachSavedRun(size_t length, F f) const {
  absl::Status status;
  for (size_t chunk = RewindFloor() / kStateChunk; chunk <= chunk_; ++chunk) {
    if (chunk > 0) status = f(State(chunk), shape_.state_bytes);
    const size_t rows = LiveLogRows(chunk, length);
    if (rows == 0) return status;  // only in the last chunk, which may have no log yet
    float* column = LogData(chunk);
    for (size_t i = 0; i < shape_.columns && status.ok(); ++i) {
      status = f(column, rows * shape_.widths[i] * sizeof(float));
      column += kStateChunk * shape_.widths[i];
    }
    if (!status.ok()) return status;
  }
  return status;
}

absl::Status ChunkLogBase::Save(SectionWriter& writer, size_t length, size_t) const {
  absl::Status status = writer.AppendUint(RewindFloor());
  if (status.ok()) status = writer.AppendUint(SavedBytes(length));
  if (!status.ok()) return status;
  return ForEachSavedRun(
      length, [&](const void* memory, size_t bytes) { return writer.Append(memory, bytes); });
}

absl::Status ChunkLogBase::Load(SectionReader& reader, BlockPool& pool, size_t length, size_t) {
  absl::StatusOr<uint64_t> from = reader.ReadUint();
  if (!from.ok()) return from.status();
  ChunkLogBase loaded(shape_);
  loaded.chunk_ = length / kStateChunk;
  loaded.has_previous_ = *from < loaded.chunk_ * kStateChunk;
  if (*from != loaded.RewindFloor()) {
    return reader.Damaged(
        absl::StrCat("it begins at position ", *from, ", not at ", loaded.RewindFloor()));
  }
  INLAY_RETURN_IF_ERROR(reader.ReadSize(loaded.SavedBytes(length)));
  for (size_t chunk = *from / kStateChunk; chunk <= loaded.chunk_; ++chunk) {
    const size_t start = chunk * kStateChunk;
    if (chunk > 0) {
      INLAY_ASSIGN_OR_RETURN(loaded.kept_.states[chunk % kKept],
                             pool.AllocateFor(start, shape_.state_bytes));
    }
    if (LiveLogRows(chunk, length) > 0) {
      INLAY_ASSIGN_OR_RETURN(loaded.kept_.logs[chunk % kKept],
                             pool.AllocateFor(start, shape_.LogBytes()));
    }
  }
  absl::Status status = loaded.ForEachSavedRun(
      length, [&](void* memory, size_t bytes) { return reader.Read(memory, bytes); });
  if (status.ok()) *this = std::move(loaded);
  return status;
}

float* ChunkLogBase::LogData(size_t chunk) const {
  return static_cast<float*>(SlotsOf(chunk).logs[chunk % kKept].data());
}

std::byte* ChunkLogBase::State(size_t chunk) const {
  if (chunk == 0) return nullptr;
  return static_cast<std::byte*>(SlotsOf(chunk).states[chunk % kKept].data());
}

void ChunkLogBase::VisitBlocks(BlockVisitor visit) const {
  for (const Slots* slots : {&kept_, &pending_}) {
    for (const BlockRef& state : slots->states) {
      if (state) visit(state.data(), shape_.state_bytes);
    }
    for (const BlockRef& log : slots->logs) {
      if (log) visit(log.data(), shape_.LogBytes());
    }
  }
}

}  // namespace inlay
