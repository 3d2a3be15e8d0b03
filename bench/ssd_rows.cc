// The Mamba2 mixer: convolution, time steps, outputs and the advance of the state.
#include <string>
#include <vector>

#include "bench/rows.h"
#include "ops/ssd.h"

namespace inlay {
namespace {

// granite-4.0-h-350m's.
constexpr SsdShape kShape = {
    .heads = 48, .head_dim = 32, .groups = 1, .state_dim = 128, .conv_width = 4};
constexpr double kState = static_cast<double>(kShape.StateElements());
constexpr double kInner = static_cast<double>(kShape.Inner());

struct Memory {
  Memory()
      : log(Values(kShape.LogElements())),
        state(Values(kShape.StateElements())),
        next(kShape.StateElements()),
        c(Values(kSsdChunk * kShape.BcDim())),
        y(kSsdChunk * kShape.Inner()),
        raw_dt(Values(kSsdChunk * kShape.heads)),
        bias(kShape.heads),
        a(kShape.heads, -1.0f),
        d(kShape.heads, 1.0f),
        view{kShape, log.data()} {
    TimeSteps(kSsdChunk);
  }
  void TimeSteps(size_t tokens) {
    SsdTimeSteps(ConstFloatRows(raw_dt.data(), tokens, kShape.heads), bias.data(), a.data(), 0,
                 view);
  }

  std::vector<float> log, state, next, c, y, raw_dt, bias, a, d;
  SsdLog view;
};

void Outputs(size_t first, size_t tokens, Row& row) {
  Memory memory;
  // Per token: the state, then B of every earlier token of the chunk for the one group, and x of
  // them for every head.
  double ops = 0;
  for (size_t t = first; t < first + tokens; ++t) {
    const double seen = static_cast<double>(t + 1);
    ops += 2 * kState + 2 * seen * (kInner + static_cast<double>(kShape.BcDim()));
  }
  row.Run({.bytes = 4 * (kState + static_cast<double>(first + tokens) *
                                      (kInner + static_cast<double>(kShape.BcDim()))),
           .ops = ops},
          [&] {
            SsdOutputs(memory.view, memory.state.data(),
                       ConstFloatRows(memory.c.data(), tokens, kShape.BcDim()), memory.d.data(),
                       first, FloatRows(memory.y.data(), tokens, kShape.Inner()), row.pool());
          });
}

void Advance(Row& row) {
  Memory memory;
  row.Run({.bytes = 8 * kState, .ops = 2 * kState * kSsdChunk},
          [&] { SsdAdvance(memory.view, memory.state.data(), memory.next.data(), row.pool()); });
}

void TimeSteps(size_t tokens, Row& row) {
  Memory memory;
  row.Run({.bytes = 12.0 * static_cast<double>(tokens * kShape.heads)},
          [&] { memory.TimeSteps(tokens); });
}

void Convolve(size_t tokens, Row& row) {
  const size_t channels = kShape.ConvDim(), width = kShape.conv_width;
  const std::vector<float> x = Values((tokens + width - 1) * channels);
  const std::vector<float> weight = Values(width * channels), bias = Values(channels);
  std::vector<float> y(tokens * channels);
  std::vector<const float*> inputs;
  for (size_t t = 0; t < tokens + width - 1; ++t) inputs.push_back(&x[t * channels]);
  const double outputs = static_cast<double>(y.size());
  row.Run({.bytes = 8 * outputs + 4 * static_cast<double>(weight.size()),
           .ops = 2 * outputs * static_cast<double>(width)},
          [&] {
            CausalConv1dSilu(inputs.data(), weight.data(), width, bias.data(),
                             FloatRows(y.data(), tokens, channels), row.pool());
          });
}

}  // namespace

void AddSsdRows() {
  AddRows("ssd_outputs/48x32x128/decode", [](Row& row) { Outputs(kSsdChunk / 2, 1, row); });
  AddRows("ssd_outputs/48x32x128/prefill:32", [](Row& row) { Outputs(0, kSsdChunk, row); });
  AddRows("ssd_advance/48x32x128", Advance);
  for (size_t tokens : {size_t{1}, kSsdChunk}) {
    const std::string end = "/tokens:" + std::to_string(tokens);
    AddRows("ssd_time_steps/48" + end, [=](Row& row) { TimeSteps(tokens, row); });
    AddRows("conv/1792x4" + end, [=](Row& row) { Convolve(tokens, row); });
  }
}

}  // namespace inlay
