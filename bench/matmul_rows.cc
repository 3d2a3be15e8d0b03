// Matrix products with weights that come from memory.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/rows.h"
#include "ops/matmul/matmul.h"

namespace inlay {
namespace {

constexpr size_t kDim = 2048;

// Matrices of one type that are multiplied with in turn: together more than caches hold, of which
// servers' CPUs have 300 MiB and more.
struct Weights {
  explicit Weights(WeightType type) : type(type) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    // Zeros: the time does not depend on the values.
    const std::vector<uint8_t> zeros(kDim * kDim / info.block_size * info.block_bytes);
    constexpr size_t kTogether = size_t{512} << 20;
    Team team(1);
    do {
      matrices.push_back(PackedMatrix::Pack({zeros.data(), type, kDim, kDim}, team));
    } while (matrices.size() * matrices.front().bytes() < kTogether);
  }

  WeightType type;
  std::vector<PackedMatrix> matrices;
};

// Kept from row to row of the same type.
const Weights& GetWeights(WeightType type) {
  static std::unique_ptr<Weights> weights;
  if (weights == nullptr || weights->type != type) {
    weights.reset();
    weights = std::make_unique<Weights>(type);
  }
  return *weights;
}

// Activations are quantized in every call, as a layer's are.
void MatMulRow(WeightType type, size_t tokens, Row& row) {
  const Weights& weights = GetWeights(type);
  const std::vector<float> x = Values(tokens * kDim);
  std::vector<float> y(tokens * kDim);
  const OperandForms forms = OperandForms::For({&weights.matrices.front()});
  size_t next = 0;
  const double elements = static_cast<double>(kDim * tokens);
  row.Run({.bytes = static_cast<double>(weights.matrices.front().bytes()) + 8 * elements,
           .ops = 2 * elements * static_cast<double>(kDim),
           .dot = DotOf(type)},
          [&] {
            const OwnedOperand input(ConstFloatRows(x.data(), tokens, kDim), forms, row.team());
            MatMul(weights.matrices[next], *input, FloatRows(y.data(), tokens, kDim), row.team());
            next = (next + 1) % weights.matrices.size();
          });
}

}  // namespace

void AddMatMulRows() {
  for (WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kQ8_0, WeightType::kQ4_0,
                          WeightType::kQ4_K, WeightType::kQ6_K}) {
    for (size_t tokens : {1, 6, 16, 512}) {
      AddRows("matmul/" + std::string(GetWeightTypeInfo(type).name) +
                  "/2048x2048/tokens:" + std::to_string(tokens),
              [=](Row& row) { MatMulRow(type, tokens, row); });
    }
  }
}

}  // namespace inlay
