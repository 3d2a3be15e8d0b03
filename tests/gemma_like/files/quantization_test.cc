#include "gemma_like/files/quantization.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_writer.h"
#include "ops/quant/dequantize.h"
#include "ops/quant/quantize.h"
#include "tests/io/gguf/changed_gguf.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

WeightType TypeFor(absl::string_view name, absl::string_view tensor, size_t cols) {
  const auto quantization = Quantization::Parse(name);
  EXPECT_TRUE(quantization.ok()) << quantization.status();
  return quantization->TypeFor(tensor, cols, 24);
}

TEST(QuantizationTest, ParsesNamesAndRefusesOthers) {
  EXPECT_EQ(Quantization::Parse("q8_0")->type, WeightType::kQ8_0);
  EXPECT_FALSE(Quantization::Parse("Q4_K")->mix);
  EXPECT_TRUE(Quantization::Parse("q4_k_m")->mix);
  for (const char* name : {"", "Q9_0", "Q6_K_M", "_K_M", "Q4_0_M", "IQ3_S"}) {
    const auto quantization = Quantization::Parse(name);
    ASSERT_FALSE(quantization.ok()) << name;
    EXPECT_NE(quantization.status().message().find("Q4_K_M"), absl::string_view::npos);
  }
}

TEST(QuantizationTest, MixesGiveSensitiveMatricesMoreBits) {
  EXPECT_EQ(TypeFor("Q4_K_M", "token_embd.weight", 2048), WeightType::kQ6_K);
  EXPECT_EQ(TypeFor("Q4_K_M", "blk.0.ffn_down.weight", 2048), WeightType::kQ6_K);
  EXPECT_EQ(TypeFor("Q4_K_M", "blk.3.ffn_down.weight", 2048), WeightType::kQ4_K);
  EXPECT_EQ(TypeFor("Q4_K_M", "blk.5.attn_v.weight", 2048), WeightType::kQ6_K);
  EXPECT_EQ(TypeFor("Q4_K_M", "blk.23.ffn_down_exps.weight", 2048), WeightType::kQ6_K);
  EXPECT_EQ(TypeFor("Q5_K_M", "blk.5.attn_q.weight", 2048), WeightType::kQ5_K);
  EXPECT_EQ(TypeFor("Q4_K", "blk.0.ffn_down.weight", 2048), WeightType::kQ4_K);
}

TEST(QuantizationTest, RowsThatDoNotFitFallBack) {
  EXPECT_EQ(TypeFor("Q4_K", "blk.0.attn_q.weight", 640), WeightType::kQ5_0);
  EXPECT_EQ(TypeFor("Q6_K", "blk.0.attn_q.weight", 640), WeightType::kQ8_0);
  EXPECT_EQ(TypeFor("IQ4_XS", "blk.0.attn_q.weight", 640), WeightType::kIQ4_NL);
  EXPECT_EQ(TypeFor("Q8_0", "blk.0.attn_q.weight", 40), WeightType::kF16);
  EXPECT_EQ(TypeFor("Q8_0", "blk.0.ffn_gate_inp.weight", 2048), WeightType::kF32);
  EXPECT_EQ(TypeFor("Q8_0", "per_layer_model_proj.weight", 2048), WeightType::kF16);
}

// Every matrix of the new file holds the bytes that quantizing the old one's rows gives, all else
// is unchanged.
TEST(QuantizationTest, RequantizesAFile) {
  const auto before = GgufFile::Open("models/bard.gguf");
  ASSERT_TRUE(before.ok()) << before.status();
  const std::string path = TempPath("requantized.gguf");
  for (const char* name : {"Q8_0", "Q4_0", "Q4_K_M"}) {
    const Quantization quantization = *Quantization::Parse(name);
    const absl::Status status = Requantize(*before, quantization, path);
    ASSERT_TRUE(status.ok()) << status;
    const auto after = GgufFile::Open(path);
    ASSERT_TRUE(after.ok()) << after.status();
    EXPECT_EQ(after->GetUint("bard.block_count").value(), 8u);
    ASSERT_EQ(after->tensors().size(), before->tensors().size());
    for (size_t i = 0; i < before->tensors().size(); ++i) {
      const GgufTensor& old = before->tensors()[i];
      const GgufTensor& made = after->tensors()[i];
      SCOPED_TRACE(std::string(old.name));
      ASSERT_EQ(made.name, old.name);
      ASSERT_EQ(made.dims, old.dims);
      if (old.type == WeightType::kF32) {
        ASSERT_EQ(made.type, old.type);
        ASSERT_EQ(std::memcmp(made.data.data(), old.data.data(), old.data.size()), 0);
        continue;
      }
      ASSERT_EQ(made.type, quantization.TypeFor(old.name, old.dims[0], 8));
      const WeightMatrix rows = {old.data.data(), old.type, old.dims[1], old.dims[0]};
      std::vector<float> row(rows.cols);
      const WeightMatrix made_rows = {made.data.data(), made.type, old.dims[1], old.dims[0]};
      std::vector<uint8_t> bytes(made_rows.RowBytes());
      for (size_t r = 0; r < rows.rows; ++r) {
        DequantizeRow(rows, r, row.data());
        QuantizeRow(made.type, row.data(), row.size(), bytes.data());
        ASSERT_EQ(std::memcmp(made_rows.RowData(r), bytes.data(), bytes.size()), 0) << "row " << r;
      }
    }
  }
  std::filesystem::remove(path);
}

// What other programs read of a file's types.
TEST(QuantizationTest, FilesSayOfWhichTypeTheyAre) {
  const GgufFile bard = Must(GgufFile::Open("models/bard.gguf"));
  const std::string path = TempPath("described.gguf"), again = TempPath("again.gguf");
  const std::pair<const char*, uint64_t> kTypes[] = {{"F32", 0},     {"F16", 1},   {"Q4_0", 2},
                                                     {"Q8_0", 7},    {"Q4_K", 14}, {"Q4_K_M", 15},
                                                     {"Q5_K_M", 17}, {"Q6_K", 18}, {"BF16", 32}};
  for (const auto& [name, number] : kTypes) {
    ASSERT_TRUE(Requantize(bard, *Quantization::Parse(name), path).ok());
    const GgufFile file = Must(GgufFile::Open(path));
    EXPECT_EQ(Must(file.GetUint("general.file_type")), number) << name;
    EXPECT_EQ(Must(file.GetUint("general.quantization_version")), 2u);
  }
  // The new type's stand in the place of the old one's.
  ASSERT_TRUE(Requantize(Must(GgufFile::Open(path)), *Quantization::Parse("Q5_0"), again).ok());
  EXPECT_EQ(Must(Must(GgufFile::Open(again)).GetUint("general.file_type")), 8u);
  for (const std::string& file : {path, again}) std::filesystem::remove(file);
}

TEST(QuantizationTest, PlansWhatItDoes) {
  const GgufFile lfm2 = Must(GgufFile::Open("tests/golden/models/lfm2-tiny-q6_k.gguf"));
  const std::string path = TempPath("planned.gguf");
  for (const char* name : {"Q8_0", "Q4_K_M", "F16"}) {
    const Quantization quantization = *Quantization::Parse(name);
    const QuantizationPlan plan = Must(PlanQuantization(lfm2, quantization));
    ASSERT_TRUE(Requantize(lfm2, quantization, path).ok());
    const GgufFile made = Must(GgufFile::Open(path));
    uint64_t before = 0, after = 0;
    size_t fallbacks = 0, requantized = 0, converted = 0;
    for (const GgufTensor& tensor : lfm2.tensors()) {
      before += tensor.data.size();
      converted += made.FindTensor(tensor.name)->type != tensor.type &&
                   GetWeightTypeInfo(tensor.type).block_size > 1;
    }
    for (const GgufTensor& tensor : made.tensors()) after += tensor.data.size();
    for (const auto& fallback : plan.fallbacks) {
      EXPECT_NE(fallback.cols % GetWeightTypeInfo(fallback.wanted).block_size, 0u);
      EXPECT_EQ(fallback.cols % GetWeightTypeInfo(fallback.stored).block_size, 0u);
      fallbacks += fallback.matrices;
    }
    for (const auto& [type, matrices] : plan.requantized) requantized += matrices;
    EXPECT_EQ(plan.bytes_before, before);
    EXPECT_EQ(plan.bytes_after, after) << name;
    EXPECT_EQ(requantized, converted) << name;
    EXPECT_TRUE(fallbacks == 0 || quantization.type != WeightType::kF16);
  }
  std::filesystem::remove(path);
}

std::string FileBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(QuantizationTest, AnyNumberOfThreadsWritesTheSameBytes) {
  const auto before = GgufFile::Open("models/bard.gguf");
  ASSERT_TRUE(before.ok()) << before.status();
  const std::string path = TempPath("threads.gguf");
  for (const char* name : {"Q8_0", "Q4_K_M", "Q2_K"}) {
    std::string expected;
    for (const size_t threads : {1, 2, 5}) {
      const Quantization quantization = *Quantization::Parse(name);
      ASSERT_TRUE(Requantize(*before, quantization, path, Replace::kSameKind, threads).ok());
      if (threads == 1) expected = FileBytes(path);
      EXPECT_TRUE(FileBytes(path) == expected) << name << ", " << threads << " threads";
    }
  }
  std::filesystem::remove(path);
}

TEST(QuantizationTest, TellsItsProgress) {
  const auto before = GgufFile::Open("models/bard.gguf");
  ASSERT_TRUE(before.ok()) << before.status();
  const std::string path = TempPath("progress.gguf");
  uint64_t last = 0, of = 0;
  ASSERT_TRUE(Requantize(*before, {.type = WeightType::kQ8_0}, path, Replace::kSameKind, 2,
                         [&](uint64_t done, uint64_t total) {
                           EXPECT_GE(done, last);
                           EXPECT_LE(done, total);
                           last = done;
                           of = total;
                         })
                  .ok());
  EXPECT_GT(of, before->file_size() / 2);
  EXPECT_EQ(last, of);
  std::filesystem::remove(path);
}

TEST(QuantizationTest, ConvolutionsStayAsTheyAre) {
  const auto before = GgufFile::Open("tests/golden/models/lfm2-tiny-q6_k.gguf");
  ASSERT_TRUE(before.ok()) << before.status();
  const std::string path = TempPath("requantized.gguf");
  ASSERT_TRUE(Requantize(*before, {.type = WeightType::kQ8_0}, path).ok());
  const auto after = GgufFile::Open(path);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->FindTensor("blk.0.shortconv.conv.weight")->type, WeightType::kF32);
  EXPECT_EQ(after->FindTensor("blk.0.shortconv.in_proj.weight")->type, WeightType::kQ8_0);
  std::filesystem::remove(path);
}

TEST(QuantizationTest, RefusesMoreLayersThanTheTensorsCanBeOf) {
  const GgufFile bard = Must(GgufFile::Open("models/bard.gguf"));
  const std::string changed = TempPath("layers.gguf"), path = TempPath("made.gguf");
  const auto quantized = [&](uint32_t layers, const std::string& alone = "") {
    WriteChanged(bard,
                 {.without_keys = {"bard.block_count"},
                  .add_keys = [&](GgufWriter& w) { w.SetUint32("bard.block_count", layers); },
                  .tensors =
                      [&](std::vector<StoredTensor>& tensors) {
                        if (alone.empty()) return;
                        std::erase_if(tensors,
                                      [&](const auto& t) { return !t.name.starts_with(alone); });
                      }},
                 changed);
    return Requantize(Must(GgufFile::Open(changed)), *Quantization::Parse("Q4_K_M"), path);
  };
  const absl::Status refused = quantized(400'000'000);  // 7 times that is more than an int holds
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
  EXPECT_NE(refused.message().find(absl::StrCat("'bard.block_count' is 400000000, more than the ",
                                                bard.tensors().size())),
            absl::string_view::npos)
      << refused;
  EXPECT_FALSE(std::filesystem::exists(path));
  EXPECT_TRUE(quantized(8).ok());
  EXPECT_TRUE(quantized(static_cast<uint32_t>(bard.tensors().size())).ok());
  // Of the last layer alone, as files of blocks that draft are.
  EXPECT_TRUE(quantized(8, "blk.7.ffn_down").ok());
  EXPECT_FALSE(quantized(9, "blk.7.ffn_down").ok());
  std::filesystem::remove(changed);
  std::filesystem::remove(path);
}

// A norm, which is copied as it is, with one weight that is no number.
TEST(QuantizationTest, RefusesWeightsThatAreNotFinite) {
  const std::string folder = TempPath("quantize_nan");
  std::filesystem::create_directory(folder);
  const std::string damaged = folder + "/damaged.gguf", path = folder + "/made.gguf";
  std::filesystem::copy_file("models/bard.gguf", damaged);
  size_t offset = 0;
  {
    const auto file = GgufFile::Open(damaged);
    ASSERT_TRUE(file.ok()) << file.status();
    const GgufTensor* norm = file->FindTensor("blk.4.attn_norm.weight");
    ASSERT_NE(norm, nullptr);
    ASSERT_EQ(norm->type, WeightType::kF32);
    // Tensors end where the file does, but for padding.
    const GgufTensor& last = file->tensors().back();
    offset = file->file_size() - (last.data.size() + 31) / 32 * 32 -
             static_cast<size_t>(last.data.data() - norm->data.data());
  }
  std::FILE* bytes = std::fopen(damaged.c_str(), "r+b");
  ASSERT_NE(bytes, nullptr);
  std::fseek(bytes, static_cast<long>(offset + 17 * sizeof(float)), SEEK_SET);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  ASSERT_EQ(std::fwrite(&nan, sizeof(nan), 1, bytes), 1u);
  std::fclose(bytes);
  const auto file = GgufFile::Open(damaged);
  ASSERT_TRUE(file.ok()) << file.status();
  const absl::Status status = Requantize(*file, {.type = WeightType::kQ8_0}, path);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(status.message().find("'blk.4.attn_norm.weight' has the value nan at element [17]"),
            absl::string_view::npos)
      << status;
  EXPECT_FALSE(std::filesystem::exists(path));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace inlay
