#include "ops/ssd.h"

#include <algorithm>
#include <cmath>

#include "tests/ops/op_test.h"
#include "tests/ops/sharing_team.h"
#include "tests/ops/state_memory.h"

namespace inlay {
namespace {

using SsdTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(SsdTest);

// One random sequence of inputs of the mixer.
struct Inputs {
  Inputs(SsdShape shape, size_t count)
      : shape(shape),
        count(count),
        x(RandomArray(count, shape.Inner(), 1)),
        b(RandomArray(count, shape.BcDim(), 2)),
        c(RandomArray(count, shape.BcDim(), 3)),
        raw_dt(RandomArray(count, shape.heads, 4, 2)),
        bias(RandomArray(1, shape.heads, 5)),
        a(RandomArray(1, shape.heads, 6)),
        d(RandomArray(1, shape.heads, 7)) {
    for (size_t h = 0; h < shape.heads; ++h) a.data()[h] = -std::exp(a.data()[h]);
  }

  SsdShape shape;
  size_t count;
  Array x, b, c, raw_dt, bias, a, d;
};

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// The recurrence, token by token.
std::vector<double> Recurrence(const Inputs& in, std::vector<double>* state) {
  const SsdShape& shape = in.shape;
  state->assign(shape.StateElements(), 0);
  std::vector<double> y;
  for (size_t t = 0; t < in.count; ++t) {
    for (size_t h = 0; h < shape.heads; ++h) {
      const double dt = Softplus(double{in.raw_dt.At(t, h)} + in.bias.data()[h]);
      const double decay = std::exp(dt * in.a.data()[h]);
      const size_t bc = h / (shape.heads / shape.groups) * shape.state_dim;
      for (size_t i = 0; i < shape.head_dim; ++i) {
        const double x = in.x.At(t, h * shape.head_dim + i);
        double* column = &(*state)[h * shape.state_dim * shape.head_dim + i];
        double sum = in.d.data()[h] * x;
        for (size_t n = 0; n < shape.state_dim; ++n) {
          double& value = column[n * shape.head_dim];
          value = decay * value + dt * x * in.b.At(t, bc + n);
          sum += value * in.c.At(t, bc + n);
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

// Runs the sequence at most `step` tokens at a time. Logs and states start as NaN; `last_state` is
// the memory of the one at the end of the last full chunk.
void RunMixer(const Inputs& in, StateType type, size_t step, Team& team, bool zero_state,
              const Array& y, Array* last_state) {
  const SsdShape& shape = in.shape;
  const Array xbc(in.count, shape.XbcDim()), dt(in.count, shape.heads);
  for (size_t t = 0; t < in.count; ++t) {
    std::copy_n(in.x.Row(t), shape.Inner(), xbc.Row(t));
    std::copy_n(in.b.Row(t), shape.BcDim(), xbc.Row(t) + shape.Inner());
    std::copy_n(in.c.Row(t), shape.BcDim(), xbc.Row(t) + shape.Inner() + shape.BcDim());
  }
  SsdTimeSteps(in.raw_dt, in.bias.data(), dt);
  size_t log_row = 0;
  for (size_t columns : SsdLog::Columns(shape)) log_row += columns;
  Array log_memory(1, kStateChunk * log_row);
  const SsdLog log = {shape, log_memory.data()};
  Array state = StateMemory(shape.StateBytes(type)), next = StateMemory(shape.StateBytes(type));
  bool has_state = zero_state;
  if (zero_state) std::fill_n(state.data(), state.size(), 0.0f);
  for (size_t t = 0; t < in.count;) {
    const size_t count = std::min(step, in.count - t);
    std::vector<SsdChunk> chunks;
    for (size_t row = 0; row < count;) {
      SsdChunk chunk;
      chunk.first = (t + row) % kStateChunk;
      chunk.row = row;
      chunk.rows = std::min(kStateChunk - chunk.first, count - row);
      // Logs of chunks that are neither entered nor left open are not needed.
      const bool whole = chunk.first == 0 && chunk.rows == kStateChunk;
      chunk.keep = !whole;
      if (chunk.keep) chunk.log = log;
      chunk.states = type;
      chunk.state = has_state ? BytesOf(state) : nullptr;
      if (chunk.first + chunk.rows == kStateChunk) {
        chunk.next = BytesOf(next);
        std::swap(state, next);
        has_state = true;
      }
      chunks.push_back(chunk);
      row += chunk.rows;
    }
    const SsdAppend append = {.shape = shape,
                              .chunks = chunks.data(),
                              .count = chunks.size(),
                              .xbc = xbc.view().Slice(t, count),
                              .dt = dt.view().Slice(t, count),
                              .a = in.a.data(),
                              .d = in.d.data(),
                              .y = y.view().Slice(t, count)};
    std::vector<float> scratch(SsdScratchFloats(shape, count, team.threads()), NAN);
    SsdMix({&append, 1}, scratch.data(), team);
    // As the owner of the log does, for the last chunk.
    const SsdChunk& last = chunks.back();
    if (last.next != nullptr) std::fill_n(log_memory.data(), log_memory.size(), NAN);
    for (size_t i = 0; i < last.rows && last.next == nullptr; ++i) {
      const float* row = xbc.Row(t + last.row + i);
      std::copy_n(row, shape.Inner(), log.x().Row(last.first + i));
      std::copy_n(row + shape.Inner(), shape.BcDim(), log.b().Row(last.first + i));
      std::copy_n(dt.Row(t + last.row + i), shape.heads, log.dt().Row(last.first + i));
    }
    t += count;
  }
  *last_state = std::move(state);
}

constexpr SsdShape kSsdShapes[] = {{1, 1, 1, 1},   {3, 5, 1, 7},    {4, 8, 2, 16},  {6, 33, 3, 65},
                                   {8, 32, 1, 64}, {4, 64, 2, 128}, {17, 4, 1, 19}, {16, 4, 8, 16}};

Array StateOf(const SsdShape& shape, StateType type, const Array& memory) {
  return StateNumbers(memory, type, shape.heads, shape.state_dim, shape.head_dim);
}

TEST_P(SsdTest, MatchesTheRecurrenceOverSeveralChunks) {
  SharingTeam team(2);
  for (const StateType type : kStateTypes) {
    double worst = 0, worst_state = 0;
    for (const SsdShape& shape : kSsdShapes) {
      const Inputs in(shape, 4 * kStateChunk);
      std::vector<double> expected_state;
      const std::vector<double> expected = Recurrence(in, &expected_state);
      const Array y(in.count, shape.Inner());
      Array state(1, 1);
      RunMixer(in, type, in.count, team, false, y, &state);
      worst = std::max(worst, Nmse(y, expected));
      worst_state = std::max(worst_state, Nmse(StateOf(shape, type, state), expected_state));
    }
    std::printf("worst NMSE: outputs %.2g, states %.2g\n", worst, worst_state);
    const double bound = type == StateType::kF32 ? 1e-11 : 2e-9;
    EXPECT_LE(worst, bound);
    EXPECT_LE(worst_state, bound);
  }
}

// The state forgets a thousandth in 1,000 tokens, so that what a chunk adds is small beside it.
TEST_P(SsdTest, SlowDecaysOverManyChunks) {
  SharingTeam team(2);
  const SsdShape shape = {2, 32, 1, 16};
  const Inputs in(shape, (SmallTests() ? 16 : 512) * kStateChunk);
  for (size_t h = 0; h < shape.heads; ++h) in.a.data()[h] = -1e-6f;
  std::vector<double> expected_state;
  const std::vector<double> expected = Recurrence(in, &expected_state);
  for (const StateType type : kStateTypes) {
    const Array y(in.count, shape.Inner());
    Array state(1, 1);
    RunMixer(in, type, in.count, team, false, y, &state);
    const double error = Nmse(y, expected);
    const double state_error = Nmse(StateOf(shape, type, state), expected_state);
    std::printf("NMSE: outputs %.2g, states %.2g\n", error, state_error);
    const double bound = type == StateType::kF32 ? 2e-11 : 2e-7;
    EXPECT_LE(error, bound);
    EXPECT_LE(state_error, bound);
  }
}

TEST_P(SsdTest, BitsDoNotDependOnBatchesOrThreads) {
  for (const SsdShape& shape : kSsdShapes) {
    const Inputs in(shape, 3 * kStateChunk + 5);
    for (const StateType type : kStateTypes) {
      const Array all(in.count, shape.Inner());
      Array last(1, 1);
      Team one(1);
      RunMixer(in, type, kStateChunk, one, false, all, &last);
      for (size_t threads : {1, 2, 3}) {
        SharingTeam team(threads);
        for (size_t step : {1, 2, 5, 7, 32, 50, 101}) {
          if (SmallTests() && (threads < 3 || (step != 7 && step != 50))) continue;
          const Array y(in.count, shape.Inner());
          Array state(1, 1);
          RunMixer(in, type, step, team, step == 5, y, &state);
          ASSERT_TRUE(SameBits(y, all)) << step << " at a time, " << threads << " threads";
          ASSERT_TRUE(SameBits(state, last));
        }
      }
    }
  }
}

// What is not finite stays so in the next chunk, and what is too small for a scale becomes zero.
TEST_P(SsdTest, StatesOfExtremeNumbers) {
  Team team(1);
  const SsdShape shape = {1, 32, 1, 3};
  for (const float extreme : {NAN, INFINITY, -INFINITY, 1e38f, 1e-37f}) {
    Inputs in(shape, kStateChunk + 1);
    std::fill_n(in.b.data(), in.b.size(), 1.0f);
    std::fill_n(in.c.data(), in.c.size(), 1.0f);
    std::fill_n(in.x.data(), in.x.size(), 0.0f);
    std::fill_n(in.raw_dt.data(), in.raw_dt.size(), 0.0f);
    in.a.data()[0] = -1e-3f;
    in.d.data()[0] = 0;
    in.x.At(kStateChunk - 1, 0) = extreme;
    const Array y(in.count, shape.Inner());
    Array state(1, 1);
    RunMixer(in, StateType::kQ16, 1, team, false, y, &state);
    const float next = y.At(kStateChunk, 0);
    if (!std::isfinite(extreme)) {
      EXPECT_TRUE(std::isnan(next)) << extreme;
    } else if (extreme > 1) {
      EXPECT_NEAR(next / y.At(kStateChunk - 1, 0), 1, 0.01) << extreme;
    } else {
      EXPECT_EQ(next, 0) << extreme;
    }
  }
}

TEST_P(SsdTest, TimeStepsOfExtremeInputs) {
  const float raws[] = {0, 1e-8f, -1e-8f, 20, -20, 88, -88, 1000, -1000, -105, 3.3e38f, -3.3e38f};
  const Array raw(1, 12), bias(1, 12), dt(1, 12);
  for (size_t h = 0; h < 12; ++h) {
    raw.data()[h] = raws[h];
    bias.data()[h] = 0;
  }
  SsdTimeSteps(raw, bias.data(), dt);
  for (size_t h = 0; h < 12; ++h) {
    const double expected = Softplus(raws[h]);
    // The exponential is zero below -104, and subnormals lose bits just above.
    EXPECT_NEAR(dt.data()[h], expected, 2e-7 * expected + 1e-38) << raws[h];
  }
  raw.data()[3] = NAN;
  SsdTimeSteps(raw, bias.data(), dt);
  EXPECT_TRUE(std::isnan(dt.data()[3]));
  EXPECT_FALSE(std::isnan(dt.data()[4]));
}

}  // namespace
}  // namespace inlay
