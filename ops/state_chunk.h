// The chunks in which recurrent mixers process a sequence.
#ifndef INLAY_OPS_STATE_CHUNK_H_
#define INLAY_OPS_STATE_CHUNK_H_

#include <cstddef>

namespace inlay {

// Recurrent states are materialised at positions that are multiples of this. Within a chunk a
// token's output is a sum over the chunk's earlier tokens: for Mamba2 on average (kStateChunk / 2)
// * heads * head_dim multiply-adds beside the state's heads * head_dim * state_dim, i.e. 1/8 of it
// at state dim 128, while the state is written once per 32 tokens.
inline constexpr size_t kStateChunk = 32;

}  // namespace inlay

#endif  // INLAY_OPS_STATE_CHUNK_H_
