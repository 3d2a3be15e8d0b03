// A model in several files: every command takes it as it takes a whole one.
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "io/gguf/gguf.h"
#include "io/gguf/gguf_split.h"
#include "io/gguf/gguf_writer.h"
#include "tests/temp_folder.h"
#include "tests/tools/program.h"

namespace inlay {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint32_t kParts = 3;

class SplitModel : public testing::Test {
 protected:
  // The demo model: the metadata in part 1, which has no tensors, the first half of them in part 2.
  void SetUp() override {
    const auto file = GgufFile::Open(kDemoModel);
    ASSERT_TRUE(file.ok()) << file.status();
    const size_t half = file->tensors().size() / 2;
    for (uint32_t part = 0; part < kParts; ++part) {
      GgufWriter writer;
      if (part == 0) {
        for (const GgufEntry& entry : file->metadata()) writer.SetValue(entry.key(), entry.value);
      }
      writer.SetUint32(kSplitNumberKey, part);
      writer.SetUint32(kSplitCountKey, kParts);
      writer.SetInt32(kSplitTensorsKey, static_cast<int32_t>(file->tensors().size()));
      absl::Span<const GgufTensor> tensors = file->tensors();
      tensors = part == 0   ? tensors.first(0)
                : part == 1 ? tensors.first(half)
                            : tensors.subspan(half);
      for (const GgufTensor& tensor : tensors) {
        const auto dims = absl::MakeConstSpan(tensor.dims).first(tensor.n_dims);
        ASSERT_TRUE(writer.AddTensor(tensor.name, dims, tensor.type).ok());
      }
      ASSERT_TRUE(writer.Open(PathOf(part)).ok());
      for (const GgufTensor& tensor : tensors) ASSERT_TRUE(writer.AppendData(tensor.data).ok());
      ASSERT_TRUE(writer.Finish().ok());
    }
  }

  std::string PathOf(uint32_t part) const {
    return SplitName{.prefix = temp_.path() + "/bard", .number = part + 1, .count = kParts}.PathOf(
        part + 1);
  }

  const TempFolder temp_;
};

std::vector<std::string> GenerateWith(const std::string& model) {
  return {"generate", "-m", model, "-p", "To be", "-n", "30", "-s", "3"};
}

TEST_F(SplitModel, RunsFromAnyPart) {
  const ProgramResult expected = RunProgram(GenerateWith(kDemoModel));
  ASSERT_EQ(expected.status, 0) << expected.err;
  for (uint32_t part = 0; part < kParts; ++part) {
    const ProgramResult result = RunProgram(GenerateWith(PathOf(part)));
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, expected.out);
  }
  const ProgramResult chat =
      RunProgram({"chat", "-m", PathOf(1), "-n", "5"}, {.input = "Hello\n/exit\n"});
  EXPECT_EQ(chat.status, 0) << chat.err;
}

TEST_F(SplitModel, RunsInTheSandbox) {
  std::vector<std::string> arguments = GenerateWith(PathOf(0));
  arguments.push_back("--sandbox");
  const ProgramResult result = RunProgram(arguments);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, RunProgram(GenerateWith(kDemoModel)).out);
  unlink(PathOf(2).c_str());
  ExpectError(RunProgram(arguments), 1, HasSubstr("part 3 of 3, " + PathOf(2) + ", is missing"));
}

TEST_F(SplitModel, InspectShowsTheWhole) {
  const ProgramResult text = RunProgram({"inspect", "-m", PathOf(0)});
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("13.5 MB in 3 files"), HasSubstr("metadata (41 keys)"),
                              HasSubstr("blk.7.attn_q.weight")));
  const auto json = RunProgram({"inspect", "-m", PathOf(0), "-o", "json"}).Json();
  const auto whole = RunProgram({"inspect", "-m", kDemoModel, "-o", "json"}).Json();
  EXPECT_EQ(json["files"], 3);
  EXPECT_EQ(whole["files"], 1);
  EXPECT_GT(json["file_bytes"], whole["file_bytes"]);
  for (const char* same : {"metadata", "tensors", "config", "memory"})
    EXPECT_EQ(json[same], whole[same]) << same;
}

// The hash of the weights is that of the whole file, and nothing written says that it is a part.
TEST_F(SplitModel, WhatIsMadeOfItIsWhole) {
  const std::string folder = temp_.path();
  for (const std::string& from : {PathOf(1), std::string(kDemoModel)}) {
    const std::string to = folder + (from == kDemoModel ? "/whole" : "/split");
    EXPECT_EQ(RunProgram({"pack", from, to + ".packed"}).status, 0);
    EXPECT_EQ(RunProgram({"quantize", from, to + ".q8", "Q8_0"}).status, 0);
  }
  EXPECT_TRUE(ReadFile(folder + "/split.packed") == ReadFile(folder + "/whole.packed"));
  EXPECT_TRUE(ReadFile(folder + "/split.q8") == ReadFile(folder + "/whole.q8"));
}

TEST_F(SplitModel, NoPartIsWrittenOver) {
  ExpectError(RunProgram({"quantize", PathOf(0), PathOf(2), "Q8_0"}), 1,
              AllOf(HasSubstr(PathOf(2)), HasSubstr("in use")));
}

}  // namespace
}  // namespace inlay
