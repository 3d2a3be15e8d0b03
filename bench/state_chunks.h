// What a cache gives to a mixer with states in chunks.
#ifndef INLAY_BENCH_STATE_CHUNKS_H_
#define INLAY_BENCH_STATE_CHUNKS_H_

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/rows.h"
#include "hwy/aligned_allocator.h"
#include "ops/state_chunk.h"

namespace inlay {

// The types of states, and what ends the names of their rows.
inline constexpr std::pair<StateType, const char*> kBenchStates[] = {{StateType::kF32, "/f32"},
                                                                     {StateType::kQ16, "/q16"}};

// A log, two states, and the chunks of an append of `tokens` tokens to a chunk that has `first`:
// they lead from one state to the other and back.
template <class Log>
struct ChunkMemory {
  ChunkMemory(const typename Log::Shape& shape, StateType type, size_t first, size_t tokens)
      : states{StateOf(shape, type), StateOf(shape, type)} {
    const auto columns = Log::Columns(shape);
    log = Values(kStateChunk * std::accumulate(columns.begin(), columns.end(), size_t{0}));
    for (size_t row = 0; row < tokens;) {
      StateChunk<Log> chunk = {
          .first = row == 0 ? first : 0, .row = row, .log = {shape, log.data()}, .states = type};
      chunk.rows = std::min(kStateChunk - chunk.first, tokens - row);
      chunk.state = states[chunks.size() % 2].data();
      if (chunk.first + chunk.rows == kStateChunk)
        chunk.next = states[(chunks.size() + 1) % 2].data();
      row += chunk.rows;
      chunks.push_back(chunk);
    }
  }

  std::vector<float> log;
  hwy::AlignedVector<std::byte> states[2];
  std::vector<StateChunk<Log>> chunks;

 private:
  // Any numbers: bytes of 0x3C are a small positive number as a float and as an int16.
  static hwy::AlignedVector<std::byte> StateOf(const typename Log::Shape& shape, StateType type) {
    return hwy::AlignedVector<std::byte>(shape.StateBytes(type), std::byte{0x3C});
  }
};

}  // namespace inlay

#endif  // INLAY_BENCH_STATE_CHUNKS_H_
