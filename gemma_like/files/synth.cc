#include "gemma_like/files/synth.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "ops/quant/quantize.h"
#include "ops/quant/weight_type.h"

namespace inlay {
namespace {

// SplitMix64 (Steele, Lea & Flood 2014, figure 17).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // In [0, 1).
  double Uniform() { return static_cast<double>(Next() >> 11) * 0x1.0p-53; }

  // Nearly normal with variance 1: the sum of four 16-bit uniforms has variance 4 / 12 and mean 2.
  double Normal() {
    const uint64_t bits = Next();
    double sum = 0;
    for (int i = 0; i < 4; ++i) sum += static_cast<double>((bits >> (16 * i)) & 0xFFFF) * 0x1.0p-16;
    return (sum - 2.0) * 1.7320508075688772;
  }

 private:
  uint64_t state_;
};

double Draw(TensorUse use, double matrix_scale, Random& random) {
  if (IsMatrix(use)) return random.Normal() * matrix_scale;
  switch (use) {
    case TensorUse::kBias:
      return 0.2 * random.Uniform() - 0.1;
    case TensorUse::kConvolution:
      return random.Uniform() - 0.5;
    case TensorUse::kDecayRate:
      return -std::exp(std::log(16.0) * random.Uniform());
    case TensorUse::kTimeStepBias: {
      const double dt = std::exp(std::log(1e-3) + std::log(100.0) * random.Uniform());
      return dt + std::log(-std::expm1(-dt));
    }
    default:  // norms
      return 0.9 + 0.2 * random.Uniform();
  }
}

WeightType StoredType(const SynthTensor& tensor, const Quantization& wanted, size_t layers) {
  if (!IsMatrix(tensor.use)) return WeightType::kF32;
  return wanted.TypeFor(tensor.name, tensor.dims[0], layers);
}

size_t RowBytes(const SynthTensor& tensor, WeightType type) {
  const WeightTypeInfo& stored = GetWeightTypeInfo(type);
  return tensor.dims[0] / stored.block_size * stored.block_bytes;
}

uint64_t RowCount(const SynthTensor& tensor) {
  uint64_t rows = 1;
  for (size_t i = 1; i < tensor.dims.size(); ++i) rows *= tensor.dims[i];
  return rows;
}

}  // namespace

void ScaleForStability(const ResidualStream& stream, std::vector<SynthTensor>& tensors) {
  constexpr double kEmbedding = 0.5;
  constexpr double kRouter = 4;
  constexpr double kBranchesVariance = 2;  // of all together, in units of the embedding's
  const auto count = [&](auto... use) {
    return std::count_if(tensors.begin(), tensors.end(),
                         [&](const SynthTensor& t) { return ((t.use == use) || ...); });
  };
  // A norm after a branch alone decides the branch's magnitude.
  const auto norms = count(TensorUse::kPostNorm);
  const auto branches = norms > 0 ? norms : count(TensorUse::kBranchEnd, TensorUse::kBranchNorm);
  const double embedding = stream.embedding_scale * kEmbedding / std::sqrt(stream.model_dim);
  const double branch = embedding * std::sqrt(kBranchesVariance / static_cast<double>(branches)) /
                        stream.branch_scale;
  for (SynthTensor& tensor : tensors) {
    switch (tensor.use) {
      case TensorUse::kEmbedding:
        tensor.scale = kEmbedding;
        break;
      case TensorUse::kLayerEmbedding:
        // A layer's part of a row has the variance of a whole row.
        tensor.scale = std::sqrt(stream.layers);
        break;
      case TensorUse::kRouter:
        tensor.scale = kRouter;
        break;
      case TensorUse::kPostNorm:
        tensor.scale = branch;
        break;
      case TensorUse::kUndividedKeyNorm:
        tensor.scale = 1 / std::sqrt(static_cast<double>(tensor.dims[0]));
        break;
      case TensorUse::kBranchEnd:
      case TensorUse::kBranchShare:
      case TensorUse::kBranchNorm:
        if (norms == 0) tensor.scale = branch;
        break;
      default:
        break;
    }
  }
}

absl::Status DescribeFile(const SynthModel& model, const Quantization& quantization,
                          GgufWriter& writer) {
  constexpr absl::string_view kTokenizerKey = "tokenizer.ggml.model";
  if (!writer.Has(kTokenizerKey)) writer.SetString(kTokenizerKey, "no_vocab");
  quantization.Describe(writer);
  for (const SynthTensor& tensor : model.tensors) {
    const WeightType type = StoredType(tensor, quantization, model.layers);
    INLAY_RETURN_IF_ERROR(writer.AddTensor(tensor.name, tensor.dims, type));
  }
  return absl::OkStatus();
}

absl::Status WriteSynth(SynthModel model, const Quantization& quantization, uint64_t seed,
                        const std::string& path, Replace replace, const Progress& progress) {
  GgufWriter& writer = *model.metadata;
  uint64_t total = 0, done = 0;
  INLAY_RETURN_IF_ERROR(DescribeFile(model, quantization, writer));
  for (const SynthTensor& tensor : model.tensors) {
    total += RowCount(tensor) * RowBytes(tensor, StoredType(tensor, quantization, model.layers));
  }
  INLAY_RETURN_IF_ERROR(writer.Open(path, replace));
  Random random(seed);
  std::vector<float> row;
  std::vector<uint8_t> bytes;
  for (const SynthTensor& tensor : model.tensors) {
    const WeightTypeInfo& stored =
        GetWeightTypeInfo(StoredType(tensor, quantization, model.layers));
    row.resize(tensor.dims[0]);
    const double scale = 1 / std::sqrt(static_cast<double>(row.size()));
    bytes.resize(RowBytes(tensor, stored.type));
    const uint64_t rows = RowCount(tensor);
    for (uint64_t r = 0; r < rows; ++r) {
      for (size_t i = 0; i < row.size(); ++i) {
        row[i] = tensor.values.empty()
                     ? static_cast<float>(tensor.scale * Draw(tensor.use, scale, random))
                     : tensor.values[r * row.size() + i];
      }
      QuantizeRow(stored.type, row.data(), row.size(), bytes.data());
      INLAY_RETURN_IF_ERROR(writer.AppendData(bytes));
      done += bytes.size();
      if (progress) progress(done, total);
    }
  }
  return writer.Finish();
}

}  // namespace inlay
