// The Mamba2 mixer: convolution, time steps, and the mix of states and tokens.
#include <algorithm>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "bench/state_chunks.h"
#include "hwy/aligned_allocator.h"
#include "ops/conv.h"
#include "ops/ssd.h"

namespace inlay {
namespace {

// Those of granite-4.0-h-350m and mamba2-370m.
constexpr SsdShape kGranite = {.heads = 48, .head_dim = 32, .groups = 1, .state_dim = 128};
constexpr SsdShape kMamba2 = {.heads = 32, .head_dim = 64, .groups = 1, .state_dim = 128};

// `first` tokens in the first chunk's log, then `tokens` new ones.
struct Memory : ChunkMemory<SsdLog> {
  Memory(const SsdShape& shape, StateType type, size_t first, size_t tokens)
      : ChunkMemory(shape, type, first, tokens),
        xbc(Values(tokens * shape.XbcDim())),
        dt(tokens * shape.heads, 0.01f),
        y(tokens * shape.Inner()),
        a(shape.heads, -1.0f),
        d(shape.heads, 1.0f) {
    const SsdLog view = {shape, log.data()};
    for (float* p : {view.dt().data, view.decay_sum().data}) {
      std::fill_n(p, kStateChunk * shape.heads, 0.01f);
    }
    append = {.shape = shape,
              .chunks = chunks.data(),
              .count = chunks.size(),
              .xbc = ConstFloatRows(xbc.data(), tokens, shape.XbcDim()),
              .dt = ConstFloatRows(dt.data(), tokens, shape.heads),
              .a = a.data(),
              .d = d.data(),
              .y = FloatRows(y.data(), tokens, shape.Inner())};
  }

  std::vector<float> xbc, dt, y, a, d;
  SsdAppend append;
};

void Mix(const SsdShape& shape, StateType type, size_t first, size_t tokens, Row& row) {
  const Memory memory(shape, type, first, tokens);
  hwy::AlignedVector<float> scratch(SsdScratchFloats(shape, tokens, row.team().threads()));
  const double state = static_cast<double>(shape.StateElements());
  const double inner = static_cast<double>(shape.Inner());
  const double bc = static_cast<double>(shape.BcDim());
  // Per token: the state, then B of every earlier token of the chunk for the one group, and x of
  // them for every head. The end of a chunk reads and writes the state once more, from a cache.
  double ops = 0;
  const double state_bytes = static_cast<double>(shape.StateBytes(type));
  double bytes = 2 * state_bytes + 4 * static_cast<double>(first + tokens) * (inner + bc);
  for (const SsdChunk& chunk : memory.chunks) {
    for (size_t t = chunk.first; t < chunk.first + chunk.rows; ++t) {
      ops += 2 * state + 2 * static_cast<double>(t + 1) * (inner + bc);
    }
    if (chunk.next != nullptr) ops += 2 * state * kStateChunk;
  }
  if (memory.chunks.back().next == nullptr) bytes -= state_bytes;
  row.Run({.bytes = bytes, .ops = ops}, [&] {
    SsdMix({&memory.append, 1}, scratch.data(), row.team());
  });
}

void TimeSteps(size_t tokens, Row& row) {
  const std::vector<float> raw = Values(tokens * kGranite.heads), bias(kGranite.heads);
  std::vector<float> dt(raw.size());
  row.Run({.bytes = 8.0 * static_cast<double>(raw.size())}, [&] {
    SsdTimeSteps(ConstFloatRows(raw.data(), tokens, kGranite.heads), bias.data(),
                 FloatRows(dt.data(), tokens, kGranite.heads));
  });
}

void Convolve(size_t tokens, Row& row) {
  const size_t channels = kGranite.XbcDim(), width = 4;
  const std::vector<float> x = Values((tokens + width - 1) * channels);
  const std::vector<float> weight = Values(width * channels), bias = Values(channels);
  std::vector<float> y(tokens * channels);
  std::vector<const float*> inputs;
  for (size_t t = 0; t < tokens + width - 1; ++t) inputs.push_back(&x[t * channels]);
  const double outputs = static_cast<double>(y.size());
  row.Run({.bytes = 8 * outputs + 4 * static_cast<double>(weight.size()),
           .ops = 2 * outputs * static_cast<double>(width)},
          [&] {
            CausalConv1d(
                {.weight = weight.data(), .width = width, .bias = bias.data(), .silu = true},
                inputs.data(), FloatRows(y.data(), tokens, channels));
          });
}

}  // namespace

void AddSsdRows() {
  for (const SsdShape& shape : {kGranite, kMamba2}) {
    const std::string name = "ssd_mix/" + std::to_string(shape.heads) + "x" +
                             std::to_string(shape.head_dim) + "x" + std::to_string(shape.state_dim);
    for (const auto& [type, of] : kBenchStates) {
      AddRows(name + "/decode" + of,
              [=, type = type](Row& row) { Mix(shape, type, kStateChunk / 2, 1, row); });
      AddRows(name + "/prefill:512" + of,
              [=, type = type](Row& row) { Mix(shape, type, 0, 512, row); });
    }
  }
  for (size_t tokens : {size_t{1}, kStateChunk}) {
    const std::string end = "/tokens:" + std::to_string(tokens);
    AddRows("ssd_time_steps/48" + end, [=](Row& row) { TimeSteps(tokens, row); });
    AddRows("conv/1792x4" + end, [=](Row& row) { Convolve(tokens, row); });
  }
}

}  // namespace inlay
