// Any bytes as quantized blocks, and any floats to be quantized: unpacked, packed and multiplied
// with the same bits for one row and for many.
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "ops/matmul/matmul.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/quantize.h"
#include "ops/quant/weight_type.h"
#include "ops/team.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay {
namespace {

bool Same(float a, float b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof(a)) == 0;
}

// Fills memory that ends where the bytes end, from the input again and again.
std::unique_ptr<uint8_t[]> Repeat(const std::string& pattern, size_t size) {
  std::unique_ptr<uint8_t[]> bytes(new uint8_t[size]());
  for (size_t i = 0; i < size && !pattern.empty(); ++i) {
    // Blocks differ although the input is short: a later one has other bits in a few places.
    const size_t round = i / pattern.size();
    bytes[i] = static_cast<uint8_t>(pattern[i % pattern.size()] ^ (round % 7 == 3 ? round : 0));
  }
  return bytes;
}

void Multiply(const PackedMatrix& packed, const WeightMatrix& w,
              const std::vector<float>& activations, size_t tokens, Team& team) {
  INLAY_FUZZ_CHECK(!packed.empty() && packed.rows() == w.rows && packed.cols() == w.cols);
  std::vector<float> together(tokens * w.rows);
  const ConstFloatRows x(activations.data(), tokens, w.cols);
  const OperandForms forms = OperandForms::For({&packed});
  MatMul(packed, *OwnedOperand(x, forms, team), FloatRows(together.data(), tokens, w.rows), team);
  std::vector<float> alone(w.rows);
  for (size_t t = 0; t < tokens; ++t) {
    MatMul(packed, *OwnedOperand(x.Slice(t, 1), forms, team), FloatRows(alone.data(), 1, w.rows),
           team);
    for (size_t r = 0; r < w.rows; ++r) INLAY_FUZZ_CHECK(Same(alone[r], together[t * w.rows + r]));
  }
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  static Team& team = *new Team(1);
  FuzzInput input(data, size);
  const WeightTypeInfo& info = WeightTypes()[input.UpTo(WeightTypes().size() - 1)];
  const WeightType type = info.type;
  const size_t block = info.block_size;
  const size_t cols = std::max<size_t>(block, 4) * (1 + input.UpTo(block > 64 ? 1 : 4));
  const size_t rows = 1 + input.UpTo(34);
  const size_t tokens = 1 + input.UpTo(8);
  const std::string pattern = input.Text(300);
  const std::string floats = input.Rest();

  WeightMatrix w{.data = nullptr, .type = type, .rows = rows, .cols = cols};
  const auto bytes = Repeat(pattern, rows * w.RowBytes());
  w.data = bytes.get();
  std::vector<float> row(cols);
  for (size_t r = 0; r < rows; ++r) DequantizeRow(w, r, row.data());

  std::vector<float> activations(tokens * cols);
  const auto raw = Repeat(floats, activations.size() * sizeof(float));
  std::memcpy(activations.data(), raw.get(), activations.size() * sizeof(float));
  Multiply(PackedMatrix::Pack(w, team), w, activations, tokens, team);
  // As a packed file may hold them: tiles of anything.
  const size_t packed_bytes = PackedMatrix::Pack(w, team).bytes();
  const AlignedCopy tiles(Repeat(pattern, packed_bytes).get(), packed_bytes);
  Multiply(PackedMatrix::View(tiles.bytes().data(), type, rows, cols), w, activations, tokens,
           team);

  if (!info.is_written) return 0;
  std::vector<uint8_t> quantized(w.RowBytes());
  for (size_t t = 0; t < tokens; ++t) {
    QuantizeRow(type, &activations[t * cols], cols, quantized.data());
    const WeightMatrix one{.data = quantized.data(), .type = type, .rows = 1, .cols = cols};
    DequantizeRow(one, 0, row.data());
  }
  return 0;
}
