// The stored past of one Mamba2 layer in one conversation: states at chunk boundaries and a log of
// the inputs since.
#ifndef INLAY_CACHE_SSD_SLOTS_H_
#define INLAY_CACHE_SSD_SLOTS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "cache/block_pool.h"
#include "cache/serialize.h"
#include "ops/ssd.h"

namespace inlay {

// Chunk k covers the positions [k * kSsdChunk, (k + 1) * kSsdChunk). Kept are, for the chunk of the
// current length and the one before it: the state at its start (with the last conv_width - 1 raw
// convolution inputs before it) and its log. Appending within a chunk writes log rows only; going
// back to a position in a kept chunk is setting the length. So a rewind is exact down to the start
// of the previous chunk: always at least kSsdChunk tokens.
//
// Chunks that an append passes through are written to pending blocks beside the kept ones, so that
// an aborted append leaves both kept chunks as they were. Copying shares all blocks.
class SsdSlots {
 public:
  static constexpr size_t kRewindDepth = kSsdChunk;

  SsdSlots() = default;
  explicit SsdSlots(const SsdShape& shape) : shape_(shape) {}

  // Floats of one boundary block: the state, then conv_width - 1 rows of raw convolution inputs.
  static constexpr size_t BoundaryElements(const SsdShape& shape) {
    return shape.StateElements() + (shape.conv_width - 1) * shape.ConvDim();
  }

  // Makes the log rows [length, length + count) and the boundaries in (length, length + count]
  // writable. ResourceExhausted when the pool has no block; what is kept is unchanged in either
  // case.
  absl::Status Prepare(BlockPool& pool, size_t length, size_t count);

  // Publishes what was written since Prepare: the kept chunks are now those of `length`.
  void Commit(size_t length);

  // Drops what was written since Prepare.
  void Abort();

  // Goes back to `length`, not below RewindFloor().
  void Truncate(size_t length);
  size_t RewindFloor() const;

  // Writes the kept chunks, which hold all that a rewind by up to kRewindDepth needs.
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const;

  // Replaces everything by what Save wrote at this length. On error nothing has changed:
  // ResourceExhausted when the pool has no block, DataLoss when what is read is impossible.
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind);

  // Between Prepare and Commit or Abort, for the chunks that the append touches, in ascending
  // order: the log of a chunk;
  SsdLog Log(size_t chunk) const;
  // the state at its start [heads, state_dim, head_dim], and the raw inputs before it, oldest first
  // [conv_width - 1, ConvDim]; both nullptr for chunk 0, where they are zeros. Those of a chunk
  // after the first one touched are to be written before they are read, and may share memory with
  // those two chunks earlier.
  float* State(size_t chunk) const;
  float* ConvTail(size_t chunk) const;

  // Bytes of all blocks held, shared ones included.
  size_t allocated_bytes() const;
  void VisitBlocks(absl::FunctionRef<void(const void* block, size_t bytes)> visit) const;

 private:
  static constexpr size_t kKept = 2;
  struct Slots {
    std::array<BlockRef, kKept> boundaries;  // of chunk k at k % kKept
    std::array<BlockRef, kKept> logs;
  };

  absl::Status Allocate(BlockPool& pool, size_t bytes, BlockRef& into) const;
  absl::Status MakeLogWritable(BlockPool& pool, size_t rows_used);
  uint64_t SavedBytes(size_t length) const;
  template <class F>
  absl::Status ForEachSavedRun(size_t length, F f) const;
  const Slots& SlotsOf(size_t chunk) const { return chunk > chunk_ ? pending_ : kept_; }
  size_t BoundaryBytes() const { return BoundaryElements(shape_) * sizeof(float); }
  size_t LogBytes() const { return shape_.LogElements() * sizeof(float); }

  SsdShape shape_;
  size_t chunk_ = 0;           // of the published length
  bool has_previous_ = false;  // kept_ also holds chunk_ - 1
  Slots kept_;
  Slots pending_;  // of chunks after chunk_, during an append
};

}  // namespace inlay

#endif  // INLAY_CACHE_SSD_SLOTS_H_
