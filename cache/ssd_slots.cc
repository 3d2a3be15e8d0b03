#include "cache/ssd_slots.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "absl/strings/str_cat.h"

namespace inlay {

absl::Status SsdSlots::Allocate(BlockPool& pool, size_t bytes, BlockRef& into) const {
  into = pool.Allocate(bytes);
  if (into) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("the cache needs a block of ", bytes, " bytes but ", pool.WhyNot(bytes)));
}

absl::Status SsdSlots::MakeLogWritable(BlockPool& pool, size_t rows_used) {
  BlockRef& log = kept_.logs[chunk_ % kKept];
  if (log.unique()) return absl::OkStatus();
  BlockRef fresh;
  if (absl::Status status = Allocate(pool, LogBytes(), fresh); !status.ok()) return status;
  if (log) {
    const SsdLog from{shape_, static_cast<float*>(log.data())};
    const SsdLog to{shape_, static_cast<float*>(fresh.data())};
    const auto copy = [rows_used](FloatRows a, FloatRows b) {
      std::copy_n(a.data, rows_used * a.stride, b.data);
    };
    copy(from.raw(), to.raw());
    copy(from.x(), to.x());
    copy(from.b(), to.b());
    copy(from.dt(), to.dt());
    copy(from.decay_sum(), to.decay_sum());
  }
  log = std::move(fresh);
  return absl::OkStatus();
}

absl::Status SsdSlots::Prepare(BlockPool& pool, size_t length, size_t count) {
  assert(length / kSsdChunk == chunk_);
  if (count == 0) return absl::OkStatus();
  if (absl::Status status = MakeLogWritable(pool, length % kSsdChunk); !status.ok()) return status;
  // Of the chunks passed through only the last two are kept, and two sets of blocks taken in turn
  // serve for all: when the state at the start of chunk k + 1 is computed, those of chunk k - 1 are
  // no longer needed.
  const size_t last_boundary = (length + count) / kSsdChunk;
  const size_t last_log = (length + count - 1) / kSsdChunk;
  const size_t end = std::min(chunk_ + kKept, last_boundary);
  for (size_t chunk = chunk_ + 1; chunk <= end; ++chunk) {
    absl::Status status = Allocate(pool, BoundaryBytes(), pending_.boundaries[chunk % kKept]);
    if (status.ok() && chunk <= last_log)
      status = Allocate(pool, LogBytes(), pending_.logs[chunk % kKept]);
    if (!status.ok()) {
      Abort();
      return status;
    }
  }
  return absl::OkStatus();
}

void SsdSlots::Commit(size_t length) {
  const size_t chunk = length / kSsdChunk;
  assert(chunk >= chunk_);
  if (chunk == chunk_) return;
  const size_t previous = chunk - 1;
  // The previous chunk was either kept already (and stays in its slot) or is pending, like the
  // current one.
  for (size_t k = std::max(previous, chunk_ + 1); k <= chunk; ++k) {
    kept_.boundaries[k % kKept] = std::move(pending_.boundaries[k % kKept]);
    kept_.logs[k % kKept] = std::move(pending_.logs[k % kKept]);
  }
  chunk_ = chunk;
  has_previous_ = true;
  Abort();
}

void SsdSlots::Abort() { pending_ = Slots(); }

void SsdSlots::Truncate(size_t length) {
  assert(length >= RewindFloor());
  const size_t chunk = length / kSsdChunk;
  if (chunk == chunk_) return;
  assert(has_previous_ && chunk + 1 == chunk_);
  kept_.boundaries[chunk_ % kKept] = BlockRef();
  kept_.logs[chunk_ % kKept] = BlockRef();
  chunk_ = chunk;
  has_previous_ = false;
}

size_t SsdSlots::RewindFloor() const { return (has_previous_ ? chunk_ - 1 : chunk_) * kSsdChunk; }

namespace {

// How many rows of a chunk's log a conversation of this length may still read. The last row of a
// chunk before the current one is not among them: who goes back into that chunk writes it anew.
size_t LiveLogRows(size_t chunk, size_t length) {
  return chunk < length / kSsdChunk ? kSsdChunk - 1 : length % kSsdChunk;
}

}  // namespace

uint64_t SsdSlots::SavedBytes(size_t length) const {
  uint64_t floats = 0;
  for (size_t chunk = RewindFloor() / kSsdChunk; chunk <= chunk_; ++chunk) {
    floats += chunk > 0 ? BoundaryElements(shape_) : 0;
    floats += LiveLogRows(chunk, length) * shape_.LogRowElements();
  }
  return floats * sizeof(float);
}

// Calls f(memory, bytes) for the pieces of memory that are saved. An error ends it.
template <class F>
absl::Status SsdSlots::ForEachSavedRun(size_t length, F f) const {
  absl::Status status;
  for (size_t chunk = RewindFloor() / kSsdChunk; chunk <= chunk_; ++chunk) {
    if (chunk > 0) status = f(State(chunk), BoundaryBytes());
    const size_t rows = LiveLogRows(chunk, length);
    if (rows == 0) return status;  // the last chunk, and maybe no log yet
    const SsdLog log = Log(chunk);
    for (const FloatRows& part : {log.raw(), log.x(), log.b(), log.dt(), log.decay_sum()}) {
      if (status.ok()) status = f(part.data, rows * part.cols * sizeof(float));
    }
    if (!status.ok()) return status;
  }
  return status;
}

absl::Status SsdSlots::Save(SectionWriter& writer, size_t length, size_t) const {
  absl::Status status = writer.AppendUint(RewindFloor());
  if (status.ok()) status = writer.AppendUint(SavedBytes(length));
  if (!status.ok()) return status;
  return ForEachSavedRun(
      length, [&](const float* memory, size_t bytes) { return writer.Append(memory, bytes); });
}

absl::Status SsdSlots::Load(SectionReader& reader, BlockPool& pool, size_t length, size_t) {
  absl::StatusOr<uint64_t> from = reader.ReadUint();
  if (!from.ok()) return from.status();
  SsdSlots loaded(shape_);
  loaded.chunk_ = length / kSsdChunk;
  loaded.has_previous_ = *from < loaded.chunk_ * kSsdChunk;
  if (*from != loaded.RewindFloor()) {
    return reader.Damaged(
        absl::StrCat("it begins at position ", *from, ", not at ", loaded.RewindFloor()));
  }
  absl::Status status = reader.ReadSize(loaded.SavedBytes(length));
  for (size_t chunk = *from / kSsdChunk; chunk <= loaded.chunk_; ++chunk) {
    if (chunk > 0 && status.ok())
      status = Allocate(pool, BoundaryBytes(), loaded.kept_.boundaries[chunk % kKept]);
    if (LiveLogRows(chunk, length) > 0 && status.ok())
      status = Allocate(pool, LogBytes(), loaded.kept_.logs[chunk % kKept]);
  }
  if (!status.ok()) return status;
  status = loaded.ForEachSavedRun(
      length, [&](float* memory, size_t bytes) { return reader.Read(memory, bytes); });
  if (status.ok()) *this = std::move(loaded);
  return status;
}

SsdLog SsdSlots::Log(size_t chunk) const {
  return {shape_, static_cast<float*>(SlotsOf(chunk).logs[chunk % kKept].data())};
}

float* SsdSlots::State(size_t chunk) const {
  if (chunk == 0) return nullptr;
  return static_cast<float*>(SlotsOf(chunk).boundaries[chunk % kKept].data());
}

float* SsdSlots::ConvTail(size_t chunk) const {
  float* state = State(chunk);
  return state == nullptr ? nullptr : state + shape_.StateElements();
}

size_t SsdSlots::allocated_bytes() const {
  size_t bytes = 0;
  VisitBlocks([&](const void*, size_t block_bytes) { bytes += block_bytes; });
  return bytes;
}

void SsdSlots::VisitBlocks(absl::FunctionRef<void(const void* block, size_t bytes)> visit) const {
  for (const Slots* slots : {&kept_, &pending_}) {
    for (const BlockRef& boundary : slots->boundaries) {
      if (boundary) visit(boundary.data(), BoundaryBytes());
    }
    for (const BlockRef& log : slots->logs) {
      if (log) visit(log.data(), LogBytes());
    }
  }
}

}  // namespace inlay
