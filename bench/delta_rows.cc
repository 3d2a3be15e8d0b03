// The mixer of gated delta nets: the mix of states and tokens.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "bench/state_chunks.h"
#include "hwy/aligned_allocator.h"
#include "ops/delta_rule.h"

namespace inlay {
namespace {

// Those of qwen3.5-0.8b and qwen3.5-27b.
constexpr DeltaShape kSmall = {.key_heads = 16, .value_heads = 16, .head_dim = 128};
constexpr DeltaShape kLarge = {.key_heads = 16, .value_heads = 48, .head_dim = 128};

// `first` tokens in the first chunk's log, then `tokens` new ones.
struct DeltaMemory : ChunkMemory<DeltaLog> {
  DeltaMemory(const DeltaShape& shape, StateType type, size_t first, size_t tokens)
      : ChunkMemory(shape, type, first, tokens),
        qkv(Values(tokens * shape.QkvDim())),
        dt(tokens * shape.value_heads, 0.01f),
        beta(tokens * shape.value_heads, 0.1f),
        y(tokens * shape.Inner()),
        a(shape.value_heads, -1.0f) {
    // Keys whose length is above 1 would let states grow without bound.
    const float length = std::sqrt(static_cast<float>(shape.head_dim));
    for (float& value : qkv) value /= length;
    for (float& value : log) value /= length;
    const DeltaLog view = {shape, log.data()};
    for (size_t j = 0; j < kStateChunk; ++j) {
      std::fill_n(view.decay_sum().Row(j), shape.value_heads, -0.01f);
    }
    append = {.shape = shape,
              .chunks = chunks.data(),
              .count = chunks.size(),
              .qkv = FloatRows(qkv.data(), tokens, shape.QkvDim()),
              .dt = ConstFloatRows(dt.data(), tokens, shape.value_heads),
              .beta = ConstFloatRows(beta.data(), tokens, shape.value_heads),
              .a = a.data(),
              .y = FloatRows(y.data(), tokens, shape.Inner())};
  }

  std::vector<float> qkv, dt, beta, y, a;
  DeltaAppend append;
};

void MixDelta(const DeltaShape& shape, StateType type, size_t first, size_t tokens, Row& row) {
  const DeltaMemory memory(shape, type, first, tokens);
  hwy::AlignedVector<float> scratch(DeltaScratchFloats(shape, tokens, row.team().threads()));
  const double state = static_cast<double>(shape.StateElements());
  const double inner = static_cast<double>(shape.Inner());
  const double keys = static_cast<double>(shape.KeyDim());
  // Per token: the state for a key and a query, then for every earlier token of the chunk two
  // products with its key and two sums with its correction. The end of a chunk reads and writes
  // the state once more, from a cache.
  double ops = 0;
  const double state_bytes = static_cast<double>(shape.StateBytes(type));
  double bytes = 2 * state_bytes + 4 * static_cast<double>(first + tokens) * (inner + keys);
  for (const DeltaChunk& chunk : memory.chunks) {
    for (size_t t = chunk.first; t < chunk.first + chunk.rows; ++t) {
      ops += 4 * state + 4 * static_cast<double>(t + 1) * (inner + keys);
    }
    if (chunk.next != nullptr) ops += 2 * state * kStateChunk;
  }
  if (memory.chunks.back().next == nullptr) bytes -= state_bytes;
  row.Run({.bytes = bytes, .ops = ops}, [&] {
    DeltaMix({&memory.append, 1}, scratch.data(), row.team());
  });
}

}  // namespace

void AddDeltaRows() {
  for (const DeltaShape& shape : {kSmall, kLarge}) {
    const std::string name = "delta_mix/" + std::to_string(shape.key_heads) + "/" +
                             std::to_string(shape.value_heads) + "x" +
                             std::to_string(shape.head_dim);
    for (const auto& [type, of] : kBenchStates) {
      AddRows(name + "/decode" + of,
              [=, type = type](Row& row) { MixDelta(shape, type, kStateChunk / 2, 1, row); });
      AddRows(name + "/prefill:512" + of,
              [=, type = type](Row& row) { MixDelta(shape, type, 0, 512, row); });
    }
  }
}

}  // namespace inlay
