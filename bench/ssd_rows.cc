// The Mamba2 mixer: convolution, time steps, and the mix of states and tokens.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "ops/conv.h"
#include "ops/ssd.h"

namespace inlay {
namespace {

// granite-4.0-h-350m's.
constexpr SsdShape kShape = {.heads = 48, .head_dim = 32, .groups = 1, .state_dim = 128};
constexpr auto kLogColumns = SsdLog::Columns(kShape);
constexpr double kState = static_cast<double>(kShape.StateElements());
constexpr double kInner = static_cast<double>(kShape.Inner());

// One chunk: `first` tokens in the log, then `tokens` new ones.
struct Memory {
  Memory(size_t first, size_t tokens)
      : log(Values(kStateChunk *
                   std::accumulate(kLogColumns.begin(), kLogColumns.end(), size_t{0}))),
        state(Values(kShape.StateElements())),
        next(kShape.StateElements()),
        xbc(Values(tokens * kShape.XbcDim())),
        dt(tokens * kShape.heads, 0.01f),
        y(tokens * kShape.Inner()),
        a(kShape.heads, -1.0f),
        d(kShape.heads, 1.0f) {
    chunk.first = first;
    chunk.rows = tokens;
    chunk.log = {kShape, log.data()};
    for (float* p : {chunk.log.dt().data, chunk.log.decay_sum().data}) {
      std::fill_n(p, kStateChunk * kShape.heads, 0.01f);
    }
    chunk.state = state.data();
    if (first + tokens == kStateChunk) chunk.next = next.data();
    append = {.shape = kShape,
              .chunks = &chunk,
              .count = 1,
              .xbc = ConstFloatRows(xbc.data(), tokens, kShape.XbcDim()),
              .dt = ConstFloatRows(dt.data(), tokens, kShape.heads),
              .a = a.data(),
              .d = d.data(),
              .y = FloatRows(y.data(), tokens, kShape.Inner())};
  }

  std::vector<float> log, state, next, xbc, dt, y, a, d;
  SsdChunk chunk;
  SsdAppend append;
};

void Mix(size_t first, size_t tokens, Row& row) {
  const Memory memory(first, tokens);
  std::vector<float> scratch(SsdScratchFloats(kShape, tokens, row.team().threads()));
  // Per token: the state, then B of every earlier token of the chunk for the one group, and x of
  // them for every head. The end of a chunk reads and writes the state once more.
  double ops = 0;
  for (size_t t = first; t < first + tokens; ++t) {
    const double seen = static_cast<double>(t + 1);
    ops += 2 * kState + 2 * seen * (kInner + static_cast<double>(kShape.BcDim()));
  }
  double bytes =
      kState + static_cast<double>(first + tokens) * (kInner + static_cast<double>(kShape.BcDim()));
  if (memory.chunk.next != nullptr) {
    ops += 2 * kState * kStateChunk;
    bytes += kState;
  }
  row.Run({.bytes = 4 * bytes, .ops = ops}, [&] {
    SsdMix({&memory.append, 1}, scratch.data(), row.team());
  });
}

void TimeSteps(size_t tokens, Row& row) {
  const std::vector<float> raw = Values(tokens * kShape.heads), bias(kShape.heads);
  std::vector<float> dt(raw.size());
  row.Run({.bytes = 8.0 * static_cast<double>(raw.size())}, [&] {
    SsdTimeSteps(ConstFloatRows(raw.data(), tokens, kShape.heads), bias.data(),
                 FloatRows(dt.data(), tokens, kShape.heads));
  });
}

void Convolve(size_t tokens, Row& row) {
  const size_t channels = kShape.XbcDim(), width = 4;
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
  AddRows("ssd_mix/48x32x128/decode", [](Row& row) { Mix(kStateChunk / 2, 1, row); });
  AddRows("ssd_mix/48x32x128/prefill:32", [](Row& row) { Mix(0, kStateChunk, row); });
  for (size_t tokens : {size_t{1}, kStateChunk}) {
    const std::string end = "/tokens:" + std::to_string(tokens);
    AddRows("ssd_time_steps/48" + end, [=](Row& row) { TimeSteps(tokens, row); });
    AddRows("conv/1792x4" + end, [=](Row& row) { Convolve(tokens, row); });
  }
}

}  // namespace inlay
