// The chunks that a batch adds to the states of a recurrent mixer.
#ifndef INLAY_GEMMA_LIKE_LAYERS_STATE_CHUNKS_H_
#define INLAY_GEMMA_LIKE_LAYERS_STATE_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/types/span.h"
#include "cache/chunk_log.h"
#include "gemma_like/layer_kind.h"
#include "ops/state_chunk.h"

namespace inlay {

// The chunks that the segments of a batch append to, with the states and logs that they read and
// write.
template <class Log>
class StateChunks {
 public:
  // `log_of(segment)` is the storage of a segment's states.
  template <class SegmentType, class LogOf>
  StateChunks(absl::Span<const SegmentType> segments, const LogOf& log_of) {
    size_t rows = 0;
    for (const SegmentType& segment : segments) rows += segment.rows;
    chunks_.reserve(rows / kStateChunk + 2 * segments.size());
    for (const SegmentType& segment : segments) {
      begins_.push_back(chunks_.size());
      Add(segment, log_of(segment));
    }
    begins_.push_back(chunks_.size());
  }

  // Those of the segment with this index, in ascending order. Valid as long as this object.
  absl::Span<const StateChunk<Log>> Of(size_t segment) const {
    return absl::MakeConstSpan(chunks_).subspan(begins_[segment],
                                                begins_[segment + 1] - begins_[segment]);
  }

  // Calls keep(row, at, log) for those of the segment's rows [begin, end) whose log is kept: `row`
  // belongs to the row `at` of the log.
  template <class Keep>
  void ForKept(size_t segment, size_t begin, size_t end, const Keep& keep) const {
    for (const StateChunk<Log>& chunk : Of(segment)) {
      if (!chunk.keep) continue;
      const size_t last = std::min(end, chunk.row + chunk.rows);
      for (size_t row = std::max(begin, chunk.row); row < last; ++row) {
        keep(row, chunk.first + row - chunk.row, chunk.log);
      }
    }
  }

 private:
  void Add(const SegmentRows& segment, const ChunkLog<Log>& log) {
    const size_t last = (segment.position + segment.rows - 1) / kStateChunk;
    for (size_t row = 0; row < segment.rows;) {
      const size_t chunk = (segment.position + row) / kStateChunk;
      StateChunk<Log> to;
      to.first = (segment.position + row) % kStateChunk;
      to.row = row;
      to.rows = std::min(kStateChunk - to.first, segment.rows - row);
      // Only two logs are kept; those of other chunks may share memory with later ones.
      to.keep = row == 0 || chunk + 1 >= last;
      if (to.keep) to.log = log.LogOf(chunk);
      to.states = log.states();
      to.state = log.State(chunk);
      if (to.first + to.rows == kStateChunk) to.next = log.State(chunk + 1);
      chunks_.push_back(to);
      row += to.rows;
    }
  }

  std::vector<StateChunk<Log>> chunks_;
  std::vector<size_t> begins_;  // of each segment's, and the end of the last
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LAYERS_STATE_CHUNKS_H_
