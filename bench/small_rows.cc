// Ops of a row at a time: norms, rotations, gates, quantization of activations, and what is done
// with logits.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "ops/matmul/matmul.h"
#include "ops/router.h"
#include "ops/row_ops.h"
#include "ops/softmax.h"

namespace inlay {
namespace {

constexpr size_t kVocabulary = 262144;  // Gemma 3's

// Adds rows of an op on `tokens` rows of 2048 floats.
template <class Op>
void AddRowwise(const std::string& name, const Op& op) {
  constexpr size_t kCols = 2048;
  for (size_t tokens : {1, 128}) {
    AddRows(name + "/2048/tokens:" + std::to_string(tokens), [=](Row& row) {
      const std::vector<float> x = Values(tokens * kCols);
      std::vector<float> y(x);
      op(ConstFloatRows(x.data(), tokens, kCols), FloatRows(y.data(), tokens, kCols), row);
    });
  }
}

double Elements(ConstFloatRows x) { return static_cast<double>(x.rows * x.cols); }

// Adds a row of an op on as many logits as a vocabulary has.
template <class Op>
void AddLogits(const std::string& name, const Op& op) {
  AddRows(name + "/262144", [=](Row& row) {
    const std::vector<float> logits = Values(kVocabulary);
    row.Run({.bytes = 4.0 * kVocabulary}, [&] { op(logits.data()); });
  });
}

}  // namespace

void AddSmallRows() {
  AddRowwise("rms_norm", [](ConstFloatRows x, FloatRows y, Row& row) {
    const std::vector<float> weight = Values(x.cols);
    row.Run({.bytes = 8 * Elements(x) + 4 * static_cast<double>(x.cols), .ops = 4 * Elements(x)},
            [&] { RmsNorm(x, weight.data(), 1e-6f, y); });
  });
  AddRowwise("rope/heads:16x128", [](ConstFloatRows x, FloatRows y, Row& row) {
    // Angles of real positions keep the lengths of what is rotated again and again: factors that
    // are no cosines and sines would soon make subnormal numbers of it, which take many times as
    // long.
    std::vector<float> angles(x.rows * 128);
    RopeAngles(1, 10000, 1, FloatRows(angles.data(), x.rows, 128));
    row.Run({.bytes = 8 * Elements(x), .ops = 3 * Elements(x)},
            [&] { ApplyRope(ConstFloatRows(angles.data(), x.rows, 128), y); });
  });
  AddRowwise("gelu_gate", [](ConstFloatRows x, FloatRows y, Row& row) {
    row.Run({.bytes = 12 * Elements(x)}, [&] { GeluTanhGate(x, x, y); });
  });
  AddRowwise("silu_gate", [](ConstFloatRows x, FloatRows y, Row& row) {
    row.Run({.bytes = 12 * Elements(x)}, [&] { SiluGate(x, x, y); });
  });
  AddRowwise("quantize", [](ConstFloatRows x, FloatRows, Row& row) {
    row.Run({.bytes = 5 * Elements(x)},
            [&] { benchmark::DoNotOptimize(OwnedOperand(x, {.quantized = true}, row.team())); });
  });
  AddLogits("argmax", [](const float* x) { benchmark::DoNotOptimize(ArgMax(x, kVocabulary)); });
  for (size_t k : {size_t{40}, kVocabulary}) {
    AddLogits("top_" + std::to_string(k),
              [k, top = std::make_shared<std::vector<IndexedValue>>()](const float* x) {
                TopK(x, kVocabulary, k, *top);
                benchmark::DoNotOptimize(top->data());
              });
  }
  AddLogits("log_sum_exp",
            [](const float* x) { benchmark::DoNotOptimize(LogSumExp(x, kVocabulary)); });
  AddRows("router/6:64", [](Row& row) {
    const std::vector<float> logits = Values(64);
    std::vector<float> shares(64);
    row.Run({.bytes = 8.0 * 64}, [&] {
      shares = logits;
      KeepTopSoftmax(6, shares.data(), shares.size());
    });
  });
}

}  // namespace inlay
