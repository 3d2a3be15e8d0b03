// The cache of a recurrent mixer for one sequence: states at chunk boundaries, and a log of the
// inputs of the tokens since.
#ifndef INLAY_CACHE_CHUNK_LOG_H_
#define INLAY_CACHE_CHUNK_LOG_H_

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <tuple>

#include "absl/status/status.h"
#include "cache/block_pool.h"
#include "cache/cache_bytes.h"
#include "cache/serialize.h"
#include "cache/storage.h"
#include "ops/state_chunk.h"
#include "ops/state_type.h"

namespace inlay {

// The sizes of a state, and of one token's row in each column of the log.
struct ChunkLogShape {
  static constexpr size_t kMaxColumns = 8;
  size_t state_bytes = 0;
  size_t columns = 0;                        // their number
  std::array<size_t, kMaxColumns> widths{};  // in floats

  constexpr size_t RowFloats() const {
    return std::accumulate(widths.begin(), widths.begin() + columns, size_t{0});
  }
  constexpr size_t LogBytes() const { return kStateChunk * RowFloats() * sizeof(float); }
};

// Chunk k covers the positions [k * kStateChunk, (k + 1) * kStateChunk). For the chunk of the
// current length and the one before it, the state at its start and its log are kept. Appending
// within a chunk writes log rows only; rewinding to a position in a kept chunk only sets the
// length. So a rewind is exact down to the start of the previous chunk, which is always at least
// kStateChunk tokens. After Trim it may be the start of the current one.
//
// The new chunks of an append that crosses a chunk boundary are written to pending blocks, so that
// an aborted append leaves both kept chunks unchanged. Copying shares all blocks.
class ChunkLogBase {
 public:
  ChunkLogBase() = default;
  explicit ChunkLogBase(const ChunkLogShape& shape) : shape_(shape) {}

  absl::Status Prepare(BlockPool& pool, size_t length, size_t count);
  void Commit(size_t length);
  void Abort(size_t length);
  void Truncate(size_t length);
  void Trim(BlockPool&, size_t length, size_t rewind);
  size_t RewindFloor() const;
  absl::Status Save(SectionWriter& writer, size_t length, size_t rewind) const;
  absl::Status Load(SectionReader& reader, BlockPool& pool, size_t length, size_t rewind);
  void VisitBlocks(BlockVisitor visit) const;

  // The state at a chunk's start; nullptr for chunk 0, whose initial state is zeros. Valid between
  // Prepare and Commit or Abort for the chunks that the append touches, which must be visited in
  // ascending order: after the first one, a chunk's state must be written before it is read, and
  // its state and log may share memory with those two chunks earlier.
  std::byte* State(size_t chunk) const;

 protected:
  float* LogData(size_t chunk) const;

 private:
  static constexpr size_t kKept = 2;
  struct Slots {
    std::array<BlockRef, kKept> states;  // of chunk k at k % kKept
    std::array<BlockRef, kKept> logs;
  };

  absl::Status MakeLogWritable(BlockPool& pool, size_t rows_used);
  uint64_t SavedBytes(size_t length) const;
  template <class F>
  absl::Status ForEachSavedRun(size_t length, F f) const;
  const Slots& SlotsOf(size_t chunk) const { return chunk > chunk_ ? pending_ : kept_; }

  ChunkLogShape shape_;
  size_t chunk_ = 0;           // the chunk of the published length
  bool has_previous_ = false;  // kept_ also holds chunk_ - 1
  Slots kept_;
  Slots pending_;  // of chunks after chunk_, during an append
};

// A chunk log whose log is seen as a Log: a view {shape, data} of consecutive matrices of
// kStateChunk rows, the columns. Log::Columns(shape) gives their widths, shape.StateBytes(type) the
// size of a state.
template <class Log>
class ChunkLog : public ChunkLogBase {
 public:
  using Shape = typename Log::Shape;

  ChunkLog() = default;
  ChunkLog(const Shape& shape, StateType states)
      : ChunkLogBase(LayoutOf(shape, states)), log_shape_(shape), states_(states) {}

  static constexpr ChunkLogShape LayoutOf(const Shape& shape, StateType states) {
    constexpr size_t kColumns = std::tuple_size_v<decltype(Log::Columns(Shape()))>;
    static_assert(kColumns <= ChunkLogShape::kMaxColumns);
    ChunkLogShape layout{
        .state_bytes = shape.StateBytes(states), .columns = kColumns, .widths = {}};
    const auto widths = Log::Columns(shape);
    for (size_t i = 0; i < kColumns; ++i) layout.widths[i] = widths[i];
    return layout;
  }

  // Upper bounds: two chunks are kept, an append writes up to two more, and the first append after
  // a fork copies the current log.
  static constexpr CacheBytes Bytes(const Shape& shape, StateType states) {
    constexpr size_t kChunks = 2;
    const ChunkLogShape layout = LayoutOf(shape, states);
    const size_t chunks = kChunks * (layout.state_bytes + layout.LogBytes());
    return {.constant = chunks,
            .append = chunks,
            .snapshot = layout.LogBytes(),
            .trimmed = chunks / kChunks};
  }

  // The log of a chunk, valid when State(chunk) is.
  Log LogOf(size_t chunk) const { return {log_shape_, LogData(chunk)}; }

  StateType states() const { return states_; }
  // The state at a chunk's start as floats, which it must have.
  float* FloatState(size_t chunk) const {
    assert(states_ == StateType::kF32);
    return reinterpret_cast<float*>(State(chunk));
  }

 private:
  Shape log_shape_;
  StateType states_ = StateType::kF32;
};

}  // namespace inlay

#endif  // INLAY_CACHE_CHUNK_LOG_H_
