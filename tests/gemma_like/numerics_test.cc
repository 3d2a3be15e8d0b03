// The bits of logits, held against those recorded for this version of the numerics.
#include "gemma_like/numerics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "base/xxh64.h"
#include "gemma_like/files/quantization.h"
#include "hwy/detect_compiler_arch.h"
#include "io/gguf/gguf.h"
#include "ops/cpu/cpu_target.h"
#include "ops/quant/weight_type.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/ops/op_test.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

// By ChosenArithmetic(). If a hash differs, conversations saved by earlier builds would continue
// with other bits: then increment kNumericsVersion and record what the test prints.
constexpr uint32_t kRecordedVersion = 5;
// An emulator, a hundred times as slow, compares the first tokens alone, on the best target.
constexpr size_t kFewTokens = 40;
constexpr char kFew[] = ", 40 tokens";
const std::map<std::string, uint64_t>& Recorded() {
  static const auto& recorded = *new std::map<std::string, uint64_t>{
      {"AVX3_ZEN4", 0xa48c748892e59acd},
      {"AVX3_DL_AMX", 0xbf4a21aa7cfa66cb},
      {"AVX3", 0x65f3ea118f255b59},
      {"AVX2", 0x910a9b8451cb8381},
      {"SSE2", 0x3f4bb224aa1fb7a1},
      {"NEON", 0xec9f8bcf665d6e4a},
      {"NEON, 40 tokens", 0xc7dca1f4ce7f199b},
      {"NEON_I8MM", 0xc6993ca09d1476af},
      {"SVE/64", 0xe5bcb672dad58034},
      {"SVE/64, 40 tokens", 0x4e114517f2544461},
      {"SVE_I8MM/64", 0x3c2861956229efa5},
      {"SVE_I8MM/64, 40 tokens", 0x4e0cf1ae24d2306e},
  };
  return recorded;
}

// Adds the logits after each token of a text, in prompts of several lengths and token by token.
void HashLogits(Engine& engine, absl::Span<const int32_t> tokens, KvType type, Xxh64& hash) {
  const auto cache = Must(engine.CreateCache({}, type));
  for (size_t at = 0, n = 1; at < tokens.size(); at += n, n = at % 7 == 0 ? 40 : 1) {
    const auto logits = Append(engine, *cache, tokens.subspan(at, std::min(n, tokens.size() - at)));
    hash.Update(logits.data(), logits.size() * sizeof(float));
  }
}

// The demo model with weights and rows of several types.
class Numerics : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto bard = GgufFile::Open(kBardPath);
    ASSERT_TRUE(bard.ok()) << bard.status();
    for (const WeightType type : {WeightType::kF32, WeightType::kF16, WeightType::kBF16,
                                  WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_K}) {
      const std::string path = TempPath("numerics.gguf");
      ASSERT_TRUE(Requantize(*bard, {.type = type}, path).ok());
      models_.push_back(Must(LoadModel(path)));
      std::remove(path.c_str());
    }
  }

  uint64_t Hash() {
    std::vector<int32_t> tokens = *models_.front().tokenizer->Encode(
        "ROMEO:\nBut, soft! what light through yonder window breaks?\nIt is the east, and Juliet "
        "is the sun.\nArise, fair sun, and kill the envious moon,\nWho is already sick and pale "
        "with grief,\nThat thou her maid art far more fair than she.\n");
    if (SmallTests()) tokens.resize(kFewTokens);
    Xxh64 hash;
    for (const LoadedModel& model : models_) HashLogits(*model.engine, tokens, KvType::kF32, hash);
    for (const KvType type : {KvType::kF16, KvType::kBF16, KvType::kQ8})
      HashLogits(*models_.front().engine, tokens, type, hash);
    return hash.Digest();
  }

  std::vector<LoadedModel> models_;
};

TEST_F(Numerics, BitsAreThoseOfTheVersion) {
  ASSERT_EQ(kNumericsVersion, kRecordedVersion) << "record the bits of the new version";
  int compared = 0;
  std::vector<std::string> targets = RunnableTargets();
  if (SmallTests()) targets.resize(1);
  for (const std::string& target : targets) {
    ASSERT_TRUE(ForceTarget(target));
    const uint64_t hash = Hash();
    const std::string arithmetic = ChosenArithmetic() + (SmallTests() ? kFew : "");
    std::printf("%s: {\"%s\", 0x%016llx},\n", target.c_str(), arithmetic.c_str(),
                static_cast<unsigned long long>(hash));
    const auto recorded = Recorded().find(arithmetic);
    if (recorded == Recorded().end()) {
      // Arm CPUs have vectors of many lengths; recorded are those of the CPUs that were emulated.
      EXPECT_TRUE(HWY_ARCH_ARM) << arithmetic << " has no recorded bits";
      continue;
    }
    EXPECT_EQ(hash, recorded->second) << target;
    ++compared;
  }
  ForceTarget("");
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace inlay
