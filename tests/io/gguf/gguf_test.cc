#include "io/gguf/gguf.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/printable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Tests below share one parsed file.
class GgufFileTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(parsed_.file.ok()) << parsed_.file.status(); }
  const GgufFile& file() { return *parsed_.file; }

  ParsedBytes parsed_ = ParseCopy(SmallFile());
};

TEST_F(GgufFileTest, ReadsEveryType) {
  EXPECT_EQ(*file().GetUint("u8"), 200u);
  EXPECT_EQ(*file().GetInt("i8"), -100);
  EXPECT_EQ(*file().GetUint("u16"), 60000u);
  EXPECT_EQ(*file().GetInt("i16"), -30000);
  EXPECT_EQ(*file().GetUint("u32"), 4000000000u);
  EXPECT_EQ(*file().GetInt("u32"), 4000000000);
  EXPECT_EQ(*file().GetInt("i32"), -2000000000);
  EXPECT_EQ(*file().GetUint("u64"), UINT64_MAX);
  EXPECT_EQ(*file().GetInt("i64"), -5);
  EXPECT_EQ(*file().GetFloat("f32"), static_cast<double>(0.1f));
  EXPECT_EQ(*file().GetFloat("f64"), 0.1);
  EXPECT_EQ(*file().GetBool("flag"), true);
  EXPECT_EQ(*file().GetString("text"), "h\xC3\xA9llo");
  EXPECT_THAT(*file().GetInts("ints"), ElementsAre(1, -2, 3));
  EXPECT_THAT(*file().GetStrings("texts"), ElementsAre("x", ""));
  EXPECT_THAT(*file().GetFloats("floats"), ElementsAre(1.5f, -2.0f));
}

TEST_F(GgufFileTest, KeepsTheOrderOfTheFile) {
  ASSERT_EQ(file().metadata().size(), 15u);
  EXPECT_EQ(file().metadata()[0].key(), "u8");
  EXPECT_EQ(file().metadata()[14].key(), "floats");
  ASSERT_EQ(file().tensors().size(), 2u);
  EXPECT_EQ(file().tensors()[0].name, "b");
  EXPECT_EQ(file().tensors()[1].name, "a");
}

TEST_F(GgufFileTest, GivesTensorsWithTheirData) {
  const GgufTensor* b = file().FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->type, WeightType::kQ8_0);
  EXPECT_EQ(b->n_dims, 2u);
  EXPECT_THAT(b->dims, ElementsAre(32, 2, 1, 1));
  EXPECT_EQ(b->num_elements(), 64u);
  EXPECT_EQ(b->data.size(), 68u);
  EXPECT_EQ(b->ShapeString(), "32 x 2");
  const GgufTensor* a = file().FindTensor("a");
  ASSERT_NE(a, nullptr);
  float values[4];
  ASSERT_EQ(a->data.size(), sizeof(values));
  std::memcpy(values, a->data.data(), sizeof(values));
  EXPECT_THAT(values, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(file().FindTensor("c"), nullptr);
}

TEST_F(GgufFileTest, MissingKeysAreNotFound) {
  EXPECT_EQ(file().Find("nothing"), nullptr);
  const absl::Status status = file().GetUint("nothing").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(status.message(),
            "test.gguf: key 'nothing' is missing, but must be there as a nonnegative integer");
}

TEST_F(GgufFileTest, WrongTypesNameTheKeyTheTypeAndTheWantedOne) {
  const auto expect = [](const absl::Status& status, absl::string_view key,
                         absl::string_view wanted) {
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(HasSubstr(std::string(key)), HasSubstr(std::string(wanted))));
  };
  expect(file().GetUint("i32").status(), "'i32' has type int32 and value -2000000000",
         "nonnegative integer");
  expect(file().GetUint("text").status(), "'text' has type string", "nonnegative integer");
  expect(file().GetUint("ints").status(), "'ints' has type array of int32 and value [1, -2, 3]",
         "nonnegative integer");
  expect(file().GetUint("f32").status(), "'f32' has type float32", "nonnegative integer");
  expect(file().GetUint("flag").status(), "'flag' has type bool and value true", "integer");
  expect(file().GetInt("u64").status(), "'u64' has type uint64 and value 18446744073709551615",
         "an integer from -2^63 to 2^63 - 1");
  expect(file().GetFloat("u32").status(), "'u32'", "a float32 or float64");
  expect(file().GetBool("u8").status(), "'u8'", "a bool");
  expect(file().GetString("u8").status(), "'u8'", "a string");
  expect(file().GetString("texts").status(), "'texts' has type array of string", "a string");
  expect(file().GetStrings("text").status(), "'text' has type string", "an array of strings");
  expect(file().GetStrings("ints").status(), "'ints'", "an array of strings");
  expect(file().GetInts("text").status(), "'text'", "an array of integers");
  expect(file().GetInts("floats").status(), "'floats'", "an array of integers");
  expect(file().GetFloats("ints").status(), "'ints'", "an array of float32");
}

// Keys that have one value in some files have one for each layer in others.
TEST_F(GgufFileTest, OneValueCountsAsAnArray) {
  EXPECT_THAT(*file().GetInts("u8"), ElementsAre(200));
  EXPECT_THAT(*file().GetFloats("f32"), ElementsAre(0.1f));
}

TEST_F(GgufFileTest, MovingKeepsTheViews) {
  const GgufFile moved = std::move(*parsed_.file);
  EXPECT_EQ(*moved.GetUint("u8"), 200u);
  EXPECT_EQ(moved.FindTensor("b")->data.size(), 68u);
}

// A mapped file may be overwritten or cut at any time.
TEST_F(GgufFileTest, WhatDescribesTheFileStaysWhenTheBytesChange) {
  std::fill_n(parsed_.copy.get(), SmallFile().size(), uint8_t{0});
  EXPECT_EQ(*file().GetUint("u8"), 200u);
  const GgufTensor* b = file().FindTensor("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->name, "b");
  EXPECT_EQ(b->ShapeString(), "32 x 2");
}

TEST_F(GgufFileTest, ValuesAreShownToPeople) {
  EXPECT_EQ(file().Find("text")->ToString(), "'h\xC3\xA9llo'");
  EXPECT_EQ(file().Find("texts")->ToString(), "['x', '']");
  EXPECT_EQ(file().Find("ints")->ToString(2), "[1, -2, ... (3 in all)]");
  EXPECT_EQ(file().Find("flag")->ToString(), "true");
  EXPECT_EQ(file().Find("i64")->ToString(), "-5");
  EXPECT_EQ(QuoteForMessage(std::string(100, 'x')), "'" + std::string(80, 'x') + "...'");
  EXPECT_EQ(QuoteForMessage("a\n\x01"), "'a\\n\\u0001'");
}

TEST(GgufParseTest, AcceptsVersion2) {
  const ParsedBytes parsed = ParseCopy(SmallFile(2));
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
  EXPECT_EQ(parsed.file->version(), 2u);
}

TEST(GgufParseTest, AcceptsAnEmptyFile) {
  const ParsedBytes parsed = ParseCopy(GgufBytes().Header(0, 0).bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
  EXPECT_EQ(parsed.file->alignment(), 32u);
}

TEST(GgufParseTest, FollowsTheAlignmentOfTheFile) {
  for (const uint32_t alignment : {8u, 64u, 65536u}) {
    GgufBytes bytes;
    bytes.Header(2, 1)
        .Key("general.alignment", GgufType::kUint32)
        .U32(alignment)
        .Tensor("a", {1}, 0, 0)
        .Tensor("b", {1}, 0, alignment)
        .PadTo(alignment)
        .Put<float>(5)
        .PadTo(alignment)
        .Put<float>(6);
    const ParsedBytes parsed = ParseCopy(bytes.bytes());
    ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
    float value = 0;
    std::memcpy(&value, parsed.file->FindTensor("b")->data.data(), sizeof(value));
    EXPECT_EQ(value, 6);
  }
}

// The sliding pattern is such an array in files of Gemma 4.
TEST(GgufParseTest, ReadsBoolArrays) {
  GgufBytes bytes;
  bytes.Header(0, 1).Array("flags", GgufType::kBool, 3).Raw(absl::string_view("\1\0\1", 3));
  const ParsedBytes parsed = ParseCopy(bytes.bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
  EXPECT_THAT(*parsed.file->GetInts("flags"), ElementsAre(1, 0, 1));
  EXPECT_FALSE(parsed.file->GetBool("flags").ok());
}

TEST(GgufParseTest, AnArrayOfEqualValuesCountsAsTheValue) {
  GgufBytes bytes;
  bytes.Header(0, 5)
      .Array("equal", GgufType::kUint32, 3)
      .U32(8)
      .U32(8)
      .U32(8)
      .Array("one", GgufType::kFloat32, 1)
      .Put<float>(0.5f)
      .Array("flags", GgufType::kBool, 2)
      .Raw("\1\1")
      .Array("texts", GgufType::kString, 1)
      .Text("x")
      .Array("none", GgufType::kUint32, 0);
  const ParsedBytes parsed = ParseCopy(bytes.bytes());
  ASSERT_TRUE(parsed.file.ok()) << parsed.file.status();
  EXPECT_EQ(*parsed.file->GetUint("equal"), 8u);
  EXPECT_EQ(*parsed.file->GetInt("equal"), 8);
  EXPECT_EQ(*parsed.file->GetFloat("one"), 0.5);
  EXPECT_EQ(*parsed.file->GetBool("flags"), true);
  EXPECT_EQ(*parsed.file->GetString("texts"), "x");
  EXPECT_THAT(std::string(parsed.file->GetUint("none").status().message()),
              HasSubstr("'none' has type array of uint32 and value []"));
}

TEST(GgufOpenTest, OpensTheDemoModel) {
  const absl::StatusOr<GgufFile> file = GgufFile::Open("models/bard.gguf");
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(*file->GetString("general.architecture"), "bard");
  EXPECT_EQ(*file->GetUint("bard.block_count"), 8u);
  const GgufTensor* embedding = file->FindTensor("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->ShapeString(), "256 x 1024");
}

TEST(GgufOpenTest, NamesTheFileThatCannotBeOpened) {
  const absl::Status status = GgufFile::Open("/nonexistent/x.gguf").status();
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("/nonexistent/x.gguf cannot be opened"));
}

}  // namespace
}  // namespace inlay
