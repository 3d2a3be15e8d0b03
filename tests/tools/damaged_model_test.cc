// Model files that are damaged where no parser sees it, or while they are in use.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "gemma_like/files/pack.h"
#include "gemma_like/generation/generate.h"
#include "gemma_like/load_model.h"
#include "gemma_like/registry.h"
#include "io/file/mapping_guard.h"
#include "io/gguf/gguf.h"
#include "ops/matmul/packed_matrix.h"
#include "ops/team.h"
#include "tests/must.h"
#include "tests/repetitions.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class DamagedModel : public testing::Test {
 protected:
  DamagedModel() : path_(ScratchPath("gguf")) { WriteFile(path_, ReadFile(kDemoModel)); }
  ~DamagedModel() override { unlink(path_.c_str()); }

  // Where the tensor's data begins in the file.
  static size_t OffsetOf(const std::string& name) {
    const auto file = GgufFile::Open(kDemoModel);
    EXPECT_TRUE(file.ok());
    const GgufTensor* tensor = file->FindTensor(name);
    EXPECT_NE(tensor, nullptr) << name;
    EXPECT_EQ(tensor->type, WeightType::kF32) << name;
    const GgufTensor& last = *std::max_element(
        file->tensors().begin(), file->tensors().end(),
        [](const auto& a, const auto& b) { return a.data.data() < b.data.data(); });
    return file->file_size() -
           static_cast<size_t>(last.data.data() + last.data.size() - tensor->data.data());
  }

  // Where a row of a matrix begins in the file at path_.
  size_t RowOf(const std::string& name, size_t row) const {
    const auto file = GgufFile::Open(path_);
    EXPECT_TRUE(file.ok());
    const GgufTensor* tensor = file->FindTensor(name);
    const std::string data(reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size());
    const size_t start = ReadFile(path_).find(data);
    EXPECT_NE(start, std::string::npos);
    return start + tensor->data.size() / tensor->dims[1] * row;
  }

  void Overwrite(size_t offset, float value) {
    std::string bytes = ReadFile(path_);
    std::memcpy(&bytes[offset], &value, sizeof(value));
    WriteFile(path_, bytes);
  }

  std::string path_;
};

TEST_F(DamagedModel, WeightsThatAreNoNumbers) {
  const size_t offset = OffsetOf("blk.4.attn_norm.weight") + 17 * sizeof(float);
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Overwrite(offset, bad);
    const auto step = AllOf(HasSubstr("position 3"), HasSubstr("not all finite"));
    // BOS and three bytes; the answer is never begun.
    ExpectError(RunProgram({"generate", "-m", path_, "-p", "zzz", "-n", "5"}), 1, step);
    ExpectError(RunProgram({"logits", "-m", path_, "--tokens", "2,3,4,5", "--greedy", "2"}), 1,
                step);
    const ProgramResult logits = RunProgram({"logits", "-m", path_, "--tokens", "2,3,4,5"});
    ExpectError(logits, 1, step);
    EXPECT_EQ(logits.out, "");
    ExpectError(RunProgram({"bench", "-m", path_, "-p", "4", "-n", "2", "-r", "1"}), 1,
                AllOf(HasSubstr("position 0"), HasSubstr("not all finite")));
    const std::string written = ScratchPath("written");
    for (const char* type : {"Q8_0", "F16", "Q4_K_M"}) {
      ExpectError(RunProgram({"quantize", path_, written, type}), 1,
                  AllOf(HasSubstr(path_), HasSubstr("'blk.4.attn_norm.weight'"), HasSubstr("[17]"),
                        HasSubstr(bad < 0 ? "-inf" : "nan")));
      EXPECT_NE(access(written.c_str(), F_OK), 0) << type;
    }
    // Where the line ends is a token too.
    ExpectError(RunProgram({"chat", "-m", path_}, {.input = "zzz\n"}), 1,
                AllOf(HasSubstr("position 4"), HasSubstr("not all finite")));
    ExpectError(
        RunProgram({"perplexity", "-m", path_, "-f", "tests/golden/demo/heldout.txt", "-c", "64"}),
        1, AllOf(HasSubstr("position 32"), HasSubstr("not all finite")));
    ExpectError(RunProgram({"generate", "-m", path_, "--check-tensors", "-p", "zzz"}), 1,
                AllOf(HasSubstr(path_), HasSubstr("'blk.4.attn_norm.weight'"), HasSubstr("[17]"),
                      HasSubstr(bad < 0 ? "-inf" : "nan")));
  }
  EXPECT_EQ(
      RunProgram({"generate", "-m", kDemoModel, "--check-tensors", "-p", "zzz", "-n", "1"}).status,
      0);
}

// What is not quantized is looked through by element, the rest row by row.
TEST_F(DamagedModel, PackedWeightsThatAreNoNumbers) {
  struct Case {
    std::string type;
    size_t offset;      // in the tile of rows 32 to 47, of row 37 and where there is one column 7
    uint16_t infinity;  // an element, or the scale of a block
  };
  const GroupLayout q8 = GetGroupLayout(PackedFormat::kBytes32);
  for (const auto& [type, offset, infinity] :
       {Case{"F16", (7 * kTileRows + 5) * 2, 0x7C00},
        Case{"BF16", (3 * kTileRows + 5) * 4 + 2, 0x7F80},  // columns 6 and 7 side by side
        Case{"Q8_0", q8.scales + 5 * 2, 0x7C00}}) {
    SCOPED_TRACE(type);
    const std::string plain = ScratchPath("plain"), packed = ScratchPath("packed");
    ASSERT_EQ(RunProgram({"quantize", kDemoModel, plain, type}).status, 0);
    ASSERT_EQ(RunProgram({"pack", plain, packed}).status, 0);
    const std::vector<std::string> generate = {"generate", "--check-tensors", "-p", "a", "-n", "1",
                                               "-m"};
    const auto check = [&](const std::string& path) {
      std::vector<std::string> arguments = generate;
      arguments.push_back(path);
      return RunProgram(arguments);
    };
    EXPECT_EQ(check(packed).status, 0);
    // The same row as the file had it before.
    for (const std::string& whole : {packed, plain}) {
      const auto file = GgufFile::Open(whole);
      ASSERT_TRUE(file.ok());
      const GgufTensor* tensor = file->FindTensor("blk.3.attn_q.weight");
      ASSERT_NE(tensor, nullptr);
      ASSERT_EQ(tensor->packed, whole == packed);
      const size_t tile = GetGroupLayout(PackedFormatOf(tensor->type)).TileBytes(tensor->dims[0]);
      const size_t row = tensor->data.size() / tensor->dims[1];
      const size_t at = tensor->packed   ? 2 * tile + offset
                        : type == "Q8_0" ? 37 * row
                                         : 37 * row + 7 * sizeof(infinity);
      std::string bytes = ReadFile(whole);
      const size_t start = bytes.find(
          std::string(reinterpret_cast<const char*>(tensor->data.data()), tensor->data.size()));
      ASSERT_NE(start, std::string::npos);
      std::memcpy(&bytes[start + at], &infinity, sizeof(infinity));
      WriteFile(path_, bytes);
      ExpectError(
          check(path_), 1,
          AllOf(HasSubstr("'blk.3.attn_q.weight'"), AnyOf(HasSubstr("inf"), HasSubstr("nan")),
                HasSubstr(type != "Q8_0"   ? "element [7, 37]"
                          : tensor->packed ? "row 37 of "
                                           : "element [0, 37]")));
    }
    unlink(plain.c_str());
    unlink(packed.c_str());
  }
}

// What is no number in a file is none in those that are made of it, or there are none.
TEST_F(DamagedModel, NoCommandHidesWeightsThatAreNoNumbers) {
  const std::string made = ScratchPath("made");
  // One of each kind first: with sanitizers these have to be enough.
  const std::vector<const char*> types = {"F32",  "Q8_0", "Q4_K",   "IQ4_XS", "F16",  "BF16",
                                          "Q4_0", "Q4_1", "Q5_0",   "Q5_1",   "Q2_K", "Q3_K",
                                          "Q5_K", "Q6_K", "IQ4_NL", "MXFP4"};
  for (size_t i = 0; i < (kSanitized ? 4 : types.size()); ++i) {
    const char* type = types[i];
    SCOPED_TRACE(type);
    ASSERT_EQ(RunProgram({"quantize", kDemoModel, path_, type, "--force"}).status, 0);
    // Of row 37 the first block: whatever of it is a number or a scale is NaN.
    const size_t block = FindWeightType(type)->block_bytes;
    std::string bytes = ReadFile(path_);
    bytes.replace(RowOf("blk.3.attn_q.weight", 37), block, block, '\xff');
    WriteFile(path_, bytes);
    const auto found = AllOf(HasSubstr("'blk.3.attn_q.weight'"), HasSubstr("37"));
    for (const char* to : {"Q8_0", "Q4_K", "F32", "IQ4_NL"}) {
      ExpectError(RunProgram({"quantize", path_, made, to}), 1, found);
      EXPECT_NE(access(made.c_str(), F_OK), 0) << to;
    }
    ASSERT_EQ(RunProgram({"pack", path_, made}).status, 0);
    ExpectError(RunProgram({"generate", "--check-tensors", "-m", made, "-p", "a"}), 1, found);
    ExpectError(RunProgram({"logits", "-m", made, "--tokens", "2,3"}), 1,
                HasSubstr("not all finite"));
    unlink(made.c_str());
  }
}

// Numbers that are too large for the new type, or for the scales of its blocks.
TEST_F(DamagedModel, QuantizeRefusesWhatIsTooLargeForTheType) {
  const std::string made = ScratchPath("made");
  ASSERT_EQ(RunProgram({"quantize", kDemoModel, path_, "F32", "--force"}).status, 0);
  const size_t offset = RowOf("blk.3.attn_q.weight", 37) + 7 * sizeof(float);
  // The second is beyond the squares that a fit sums up.
  for (const float large : {1e10f, 1e20f}) {
    Overwrite(offset, large);
    for (const char* type : {"F16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "IQ4_NL", "Q2_K",
                             "Q3_K", "Q4_K", "Q5_K", "Q6_K"}) {
      ExpectError(RunProgram({"quantize", path_, made, type}), 1,
                  AllOf(HasSubstr("'blk.3.attn_q.weight'"), HasSubstr(", 37]"), HasSubstr(type)));
      EXPECT_NE(access(made.c_str(), F_OK), 0) << type;
    }
    EXPECT_EQ(RunProgram({"quantize", path_, made, "BF16"}).status, 0);
    unlink(made.c_str());
  }
}

TEST_F(DamagedModel, ThatShrinksBetweenOpeningAndLoading) {
  GuardMappedFiles();
  auto opened = GgufFile::Open(path_);
  ASSERT_TRUE(opened.ok()) << opened.status();
  const auto file = std::make_shared<const GgufFile>(*std::move(opened));
  const auto entry = FindConfig(*file);
  ASSERT_TRUE(entry.ok());
  ASSERT_TRUE(file->CheckWhole().ok());
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(file->file_size() / 2)), 0);
  const auto engine = (*entry)->load(file, {});
  ASSERT_TRUE(engine.ok());  // of zeros
  const auto cache = Must((*engine)->CreateCache({}));
  std::vector<float> logits((*engine)->info().vocab_size);
  const absl::Status status =
      Prefill(**engine, *cache, {{1, 2, 3}}, FloatRows(logits.data(), 1, logits.size()));
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_THAT(std::string(status.message()), AllOf(HasSubstr(path_), HasSubstr("shorter")));
  EXPECT_EQ(cache->length(), 0u);
}

TEST_F(DamagedModel, ThatShrinksBeforeItIsPacked) {
  GuardMappedFiles();
  const GgufFile file = Must(GgufFile::Open(path_));
  ASSERT_EQ(truncate(path_.c_str(), static_cast<off_t>(file.file_size() / 2)), 0);
  Team team(1);
  const std::string packed = path_ + ".packed";
  const absl::Status status = WritePacked(file, team, packed, Replace::kNothing);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_NE(access(packed.c_str(), F_OK), 0) << "a model of zeros";
}

TEST_F(DamagedModel, ThatShrinksWhileItRuns) {
  GuardMappedFiles();
  auto model = LoadModel(path_);
  ASSERT_TRUE(model.ok()) << model.status();
  const auto cache = Must(model->engine->CreateCache({}));
  std::vector<float> logits(model->engine->info().vocab_size);
  const FloatRows row(logits.data(), 1, logits.size());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < 60; ++i) tokens.push_back(i * 61 % 500);
  ASSERT_TRUE(Prefill(*model->engine, *cache, tokens, row).ok());
  ASSERT_EQ(truncate(path_.c_str(), 4096), 0);
  const absl::Status status = Prefill(*model->engine, *cache, tokens, row);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << status;
  EXPECT_EQ(cache->length(), tokens.size());
}

// The real program, at whatever moments.
TEST_F(DamagedModel, ThatShrinksUnderTheProgram) {
  const std::string whole = ReadFile(kDemoModel);
  int refused = 0;
  for (int milliseconds = 0; milliseconds < 60; milliseconds += 3) {
    WriteFile(path_, whole);
    const ProgramResult result = RunProgram(
        {"generate", "-m", path_, "-p", "A", "-n", "40"}, {.while_running = [&](pid_t) {
          std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
          EXPECT_EQ(truncate(path_.c_str(), milliseconds % 2 == 0 ? 1000 : 5'000'000), 0);
        }});
    if (result.status == 0) continue;  // it had finished
    ExpectError(result, 1, HasSubstr(path_));
    ++refused;
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace inlay
