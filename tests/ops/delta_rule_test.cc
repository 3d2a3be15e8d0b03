#include "ops/delta_rule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "ops/row_ops.h"
#include "tests/ops/op_test.h"
#include "tests/ops/sharing_team.h"
#include "tests/ops/state_memory.h"

namespace inlay {
namespace {

using DeltaRuleTest = OnEveryTarget;
INLAY_ON_PLAIN_TARGETS(DeltaRuleTest);

// One random sequence of inputs of the mixer.
struct DeltaInputs {
  // Each log decay is drawn from [0, 2 * mean_decay] and negative.
  DeltaInputs(DeltaShape shape, size_t count, float mean_decay = 0.1f)
      : shape(shape),
        count(count),
        qkv(RandomArray(count, shape.QkvDim(), 1)),
        dt(RandomArray(count, shape.value_heads, 2)),
        beta(RandomArray(count, shape.value_heads, 3, 2)),
        a(1, shape.value_heads) {
    NormKeysAndQueries();
    for (size_t i = 0; i < dt.size(); ++i) dt.data()[i] = std::min(std::abs(dt.data()[i]), 2.0f);
    Logistic(beta);
    std::fill_n(a.data(), a.size(), -mean_decay);
  }

  void NormKeysAndQueries() const {
    const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    for (size_t t = 0; t < count; ++t) {
      const FloatRows heads(qkv.Row(t), 2 * shape.key_heads, shape.head_dim);
      const FloatRows queries = heads.Slice(0, shape.key_heads);
      const FloatRows keys = heads.Slice(shape.key_heads, shape.key_heads);
      L2Norm(queries, 1e-6f, scale, queries);
      L2Norm(keys, 1e-6f, 1, keys);
    }
  }

  const float* Query(size_t t, size_t head) const {
    return qkv.Row(t) + head % shape.key_heads * shape.head_dim;
  }
  float* Key(size_t t, size_t head) const {
    return qkv.Row(t) + shape.KeyDim() + head % shape.key_heads * shape.head_dim;
  }
  const float* Value(size_t t, size_t head) const {
    return qkv.Row(t) + 2 * shape.KeyDim() + head * shape.head_dim;
  }

  DeltaShape shape;
  size_t count;
  Array qkv, dt, beta, a;
};

// The recurrence, token by token: the state decays, and what it then returns for the token's key
// moves towards the token's value.
std::vector<double> DeltaRecurrence(const DeltaInputs& in, std::vector<double>* state) {
  const size_t dim = in.shape.head_dim;
  state->assign(in.shape.StateElements(), 0);
  std::vector<double> y;
  for (size_t t = 0; t < in.count; ++t) {
    for (size_t h = 0; h < in.shape.value_heads; ++h) {
      const float* k = in.Key(t, h);
      const float* q = in.Query(t, h);
      const double decay = std::exp(double{in.dt.At(t, h)} * in.a.data()[h]);
      double* s = &(*state)[h * dim * dim];  // [keys, values]
      for (size_t i = 0; i < dim * dim; ++i) s[i] *= decay;
      for (size_t i = 0; i < dim; ++i) {
        double found = 0;
        for (size_t n = 0; n < dim; ++n) found += s[n * dim + i] * k[n];
        const double u = in.beta.At(t, h) * (in.Value(t, h)[i] - found);
        double sum = 0;
        for (size_t n = 0; n < dim; ++n) {
          s[n * dim + i] += k[n] * u;
          sum += s[n * dim + i] * q[n];
        }
        y.push_back(sum);
      }
    }
  }
  return y;
}

struct DeltaOutcome {
  Array y;
  Array state;  // the memory of the one at the end of the last full chunk
};

// Runs the sequence at most `step` tokens at a time. Logs and states start as NaN.
DeltaOutcome RunDelta(const DeltaInputs& in, StateType type, size_t step, Team& team) {
  const DeltaShape& shape = in.shape;
  Array y(in.count, shape.Inner());
  size_t log_row = 0;
  for (size_t columns : DeltaLog::Columns(shape)) log_row += columns;
  // The chunk that an append enters and the one that it leaves open, if it is another.
  const Array log_memory(2, kStateChunk * log_row);
  DeltaLog log = {shape, log_memory.Row(0)}, next_log = {shape, log_memory.Row(1)};
  Array state = StateMemory(shape.StateBytes(type)), next = StateMemory(shape.StateBytes(type));
  bool has_state = false;
  for (size_t t = 0; t < in.count;) {
    const size_t count = std::min(step, in.count - t);
    const Array qkv(count, shape.QkvDim());  // values become corrections
    for (size_t i = 0; i < count; ++i) std::copy_n(in.qkv.Row(t + i), shape.QkvDim(), qkv.Row(i));
    std::vector<DeltaChunk> chunks;
    for (size_t row = 0; row < count;) {
      DeltaChunk chunk;
      chunk.first = (t + row) % kStateChunk;
      chunk.row = row;
      chunk.rows = std::min(kStateChunk - chunk.first, count - row);
      // Logs of chunks that are neither entered nor left open are not needed.
      chunk.keep = chunk.first != 0 || chunk.rows != kStateChunk;
      if (chunk.keep) chunk.log = row == 0 ? log : next_log;
      for (size_t i = 0; chunk.keep && i < chunk.rows; ++i) {
        std::copy_n(qkv.Row(row + i) + shape.KeyDim(), shape.KeyDim(),
                    chunk.log.keys().Row(chunk.first + i));
      }
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
    const DeltaAppend append = {.shape = shape,
                                .chunks = chunks.data(),
                                .count = chunks.size(),
                                .qkv = qkv,
                                .dt = in.dt.view().Slice(t, count),
                                .beta = in.beta.view().Slice(t, count),
                                .a = in.a.data(),
                                .y = y.view().Slice(t, count)};
    std::vector<float> scratch(DeltaScratchFloats(shape, count, team.threads()), NAN);
    DeltaMix({&append, 1}, scratch.data(), team);
    if (chunks.size() > 1) std::swap(log, next_log);
    t += count;
  }
  return {std::move(y), std::move(state)};
}

constexpr DeltaShape kDeltaShapes[] = {{1, 1, 1},  {1, 3, 5},  {2, 4, 16},  {2, 6, 33},
                                       {3, 3, 64}, {1, 2, 96}, {2, 4, 128}, {16, 32, 8}};

// Fails if the NMSE of outputs or states is above `bound` with states of floats, or above
// `q16_bound` with those of StateType::kQ16.
void ExpectErrors(const std::function<DeltaInputs(const DeltaShape&)>& make, double bound,
                  double q16_bound) {
  SharingTeam team(2);
  for (const StateType type : kStateTypes) {
    double worst = 0, worst_state = 0;
    for (const DeltaShape& shape : kDeltaShapes) {
      const DeltaInputs in = make(shape);
      std::vector<double> expected_state;
      const std::vector<double> expected = DeltaRecurrence(in, &expected_state);
      const DeltaOutcome outcome = RunDelta(in, type, in.count, team);
      const Array state =
          StateNumbers(outcome.state, type, shape.value_heads, shape.head_dim, shape.head_dim);
      worst = std::max(worst, Nmse(outcome.y, expected));
      worst_state = std::max(worst_state, Nmse(state, expected_state));
    }
    std::printf("worst NMSE: outputs %.2g, states %.2g\n", worst, worst_state);
    const double limit = type == StateType::kF32 ? bound : q16_bound;
    EXPECT_LE(worst, limit);
    EXPECT_LE(worst_state, limit);
  }
}

TEST_P(DeltaRuleTest, MatchesTheRecurrenceOverSeveralChunks) {
  ExpectErrors([](const DeltaShape& shape) { return DeltaInputs(shape, 4 * kStateChunk); }, 1e-11,
               2e-9);
}

// A token's decay is e^-32 on average, so that their product is zero after four tokens, and the log
// decays of a chunk sum up to 1000, of which a float knows the third decimal.
TEST_P(DeltaRuleTest, DecaysWhoseProductUnderflows) {
  ExpectErrors([](const DeltaShape& shape) { return DeltaInputs(shape, 2 * kStateChunk, 40); },
               1e-10, 2e-9);
}

// Nothing decays and all keys are nearly the same, so that each correction cancels what the one
// before it wrote.
TEST_P(DeltaRuleTest, KeysThatRepeat) {
  const auto make = [](const DeltaShape& shape) {
    DeltaInputs in(shape, 4 * kStateChunk, 0);
    for (size_t t = 1; t < in.count; ++t) {
      for (size_t h = 0; h < shape.key_heads; ++h) {
        for (size_t i = 0; i < shape.head_dim; ++i) {
          in.Key(t, h)[i] = in.Key(0, h)[i] + 0.05f * in.Key(t, h)[i];
        }
      }
    }
    in.NormKeysAndQueries();
    std::fill_n(in.beta.data(), in.beta.size(), 1.0f);
    return in;
  };
  ExpectErrors(make, 1e-11, 4e-9);
}

TEST_P(DeltaRuleTest, BitsDoNotDependOnBatchesOrThreads) {
  for (const DeltaShape& shape : kDeltaShapes) {
    if (SmallTests() && shape.head_dim > 64) continue;
    const DeltaInputs in(shape, 3 * kStateChunk + 5);
    for (const StateType type : kStateTypes) {
      Team one(1);
      const DeltaOutcome whole = RunDelta(in, type, kStateChunk, one);
      for (size_t threads : {1, 2, 3}) {
        SharingTeam team(threads);
        for (size_t step : {1, 2, 5, 7, 32, 50, 101}) {
          if (SmallTests() && (threads < 3 || (step != 7 && step != 50))) continue;
          const DeltaOutcome outcome = RunDelta(in, type, step, team);
          ASSERT_TRUE(SameBits(outcome.y, whole.y)) << step << " at a time, " << threads;
          ASSERT_TRUE(SameBits(outcome.state, whole.state));
        }
      }
    }
  }
}

}  // namespace
}  // namespace inlay
