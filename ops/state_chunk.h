// The chunks in which recurrent mixers process a sequence.
#ifndef INLAY_OPS_STATE_CHUNK_H_
#define INLAY_OPS_STATE_CHUNK_H_

#include <algorithm>
#include <cstddef>

#include "ops/state_type.h"

namespace inlay {

// Recurrent states are materialised at positions that are multiples of this. Within a chunk a
// token's output is a sum over the chunk's earlier tokens: for Mamba2 on average (kStateChunk / 2)
// * heads * head_dim multiply-adds beside the state's heads * head_dim * state_dim, i.e. 1/8 of it
// at state dim 128, while the state is written once per 32 tokens.
inline constexpr size_t kStateChunk = 32;

// What an append adds to one chunk of a mixer whose log is a Log.
template <class Log>
struct StateChunk {
  size_t first = 0;   // earlier tokens of the chunk: rows [0, first) of its log
  size_t row = 0;     // the append's row of the first new token
  size_t rows = 0;    // new tokens
  Log log;            // without memory where `first` is 0 and `keep` is false
  bool keep = false;  // whether to write what is computed of the new tokens to the log
  StateType states = StateType::kF32;  // how both of the following are stored
  // The state at the chunk's start, a matrix for each head; nullptr means zeros.
  const std::byte* state = nullptr;
  // Receives the state at the chunk's end, which the new tokens must reach; nullptr if it is not
  // needed. Does not overlap `state`.
  std::byte* next = nullptr;

  // How many of the new tokens come before the append's row `first_output`.
  size_t Skipped(size_t first_output) const {
    return std::clamp(first_output, row, row + rows) - row;
  }
};

}  // namespace inlay

#endif  // INLAY_OPS_STATE_CHUNK_H_
