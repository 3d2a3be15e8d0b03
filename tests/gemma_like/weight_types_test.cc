// A model in every quantized type against the same weights as floats.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "gemma_like/files/quantization.h"
#include "io/gguf/gguf.h"
#include "ops/quant/weight_type.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/ops/quant/quant_rows.h"
#include "tests/ops/quant/quantized_weights.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

constexpr char kModel[] = "tests/golden/models/lfm2-tiny-q6_k.gguf";

// Writes the model with blocks of any bytes in place of its quantized matrices: for types that no
// quantizer here writes, too.
void WriteModel(const GgufFile& model, const WeightTypeInfo& type, const std::string& path) {
  const auto replace = [&](std::vector<StoredTensor>& tensors) {
    for (StoredTensor& tensor : tensors) {
      if (tensor.type != WeightType::kQ6_K) continue;
      const size_t blocks = tensor.data.size() / GetWeightTypeInfo(tensor.type).block_bytes *
                            GetWeightTypeInfo(tensor.type).block_size / type.block_size;
      std::vector<uint8_t> bytes = QuantBytes(blocks * type.block_bytes);
      for (size_t b = 0; b < bytes.size(); b += type.block_bytes) {
        MakeScalesModerate(type.type, &bytes[b]);
      }
      tensor.type = type.type;
      tensor.data.assign(bytes.begin(), bytes.end());
    }
  };
  WriteChanged(model, {.tensors = replace}, path);
}

// The activations are rounded to 8 bits where weights are quantized, and nothing else differs.
// Random blocks make large weights, on which such errors grow; a wrong weight gives an NMSE near 1.
TEST(WeightTypesTest, EveryTypeIsCloseToItsFloats) {
  const auto model = GgufFile::Open(kModel);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::string path = TempPath("weights.gguf"), floats = TempPath("floats.gguf");
  for (const WeightType type : QuantizedTypes()) {
    const WeightTypeInfo& info = GetWeightTypeInfo(type);
    SCOPED_TRACE(std::string(info.name));
    WriteModel(*model, info, path);
    const auto file = GgufFile::Open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE(Requantize(*file, {.type = WeightType::kF32}, floats).ok());
    const std::vector<float> logits = LogitsOf(Must(LoadModel(path))),
                             expected = LogitsOf(Must(LoadModel(floats)));
    double error = 0, norm = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      error += (logits[i] - expected[i]) * (logits[i] - expected[i]);
      norm += expected[i] * expected[i];
    }
    std::printf("%s NMSE %.2g\n", std::string(info.name).c_str(), error / norm);
    EXPECT_LE(error, 1e-2 * norm);
  }
  std::remove(path.c_str());
  std::remove(floats.c_str());
}

}  // namespace
}  // namespace inlay
