// Models that are split into several files.
#include "io/gguf/gguf_split.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/file/mapping_guard.h"
#include "io/gguf/gguf.h"
#include "tests/io/file/folder_test.h"
#include "tests/io/gguf/gguf_bytes.h"

namespace inlay {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// A part of a split model, its keys and tensors of 4 floats with this value each.
struct Part {
  std::optional<uint16_t> number;
  std::optional<uint16_t> count;
  std::optional<int32_t> total;
  std::vector<std::pair<std::string, float>> tensors;
  uint32_t alignment = 32;
  std::string text = {};  // of the key "general.name"
};

std::string BytesOf(const Part& part) {
  GgufBytes bytes;
  bytes.Header(part.tensors.size(), 1 + part.number.has_value() + part.count.has_value() +
                                        part.total.has_value() + !part.text.empty());
  if (part.count.has_value()) bytes.Key(kSplitCountKey, GgufType::kUint16).Put(*part.count);
  if (!part.text.empty()) bytes.Key("general.name", GgufType::kString).Text(part.text);
  bytes.Key("general.alignment", GgufType::kUint32).U32(part.alignment);
  if (part.number.has_value()) bytes.Key(kSplitNumberKey, GgufType::kUint16).Put(*part.number);
  if (part.total.has_value()) bytes.Key(kSplitTensorsKey, GgufType::kInt32).Put(*part.total);
  uint64_t offset = 0;
  for (const auto& [name, value] : part.tensors) {
    bytes.Tensor(name, {4}, 0, offset);
    offset += std::max<uint64_t>(part.alignment, 16);
  }
  for (const auto& [name, value] : part.tensors) {
    bytes.PadTo(part.alignment).Put(value).Put(value).Put(value).Put(value);
  }
  return bytes.bytes();
}

class SplitTest : public FolderTest<> {
 protected:
  SplitTest() {
    parts_ = {
        {.number = 0, .count = 3, .total = 3, .tensors = {}, .text = "the model"},
        {.number = 1, .count = 3, .total = 3, .tensors = {{"a", 1}, {"b", 2}}, .alignment = 8},
        {.number = 2, .count = 3, .total = 3, .tensors = {{"c", 3}}, .alignment = 64},
    };
  }

  std::string PathOf(size_t part) {
    return Path("m-0000" + std::to_string(part) + "-of-00003.gguf");
  }

  void WriteParts() {
    for (size_t i = 0; i < parts_.size(); ++i)
      Make(PathOf(i + 1).substr(folder_.size() + 1), BytesOf(parts_[i]));
  }

  // What opening part 1 says after it was written with a fault.
  std::string Message() {
    WriteParts();
    const absl::Status status = GgufFile::Open(PathOf(1)).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  }

  std::vector<Part> parts_;
};

float FirstValue(const GgufFile& file, absl::string_view name) {
  float value = 0;
  const GgufTensor* tensor = file.FindTensor(name);
  if (tensor != nullptr) std::memcpy(&value, tensor->data.data(), sizeof(value));
  return value;
}

TEST_F(SplitTest, AnyPartOpensAllOfThem) {
  WriteParts();
  uint64_t bytes = 0;
  for (const Part& part : parts_) bytes += BytesOf(part).size();
  for (size_t i = 1; i <= 3; ++i) {
    const auto opened = GgufFile::Open(PathOf(i));
    ASSERT_TRUE(opened.ok()) << opened.status();
    EXPECT_EQ(opened->name(), PathOf(i));
    EXPECT_EQ(opened->num_files(), 3u);
    EXPECT_EQ(opened->file_size(), bytes);
    EXPECT_EQ(*opened->GetString("general.name"), "the model");
    EXPECT_EQ(opened->metadata().size(), 2u);  // without what concerns the split
    EXPECT_EQ(opened->Find(kSplitCountKey), nullptr);
    ASSERT_EQ(opened->tensors().size(), 3u);
    EXPECT_EQ(FirstValue(*opened, "a"), 1);
    EXPECT_EQ(FirstValue(*opened, "b"), 2);
    EXPECT_EQ(FirstValue(*opened, "c"), 3);
    for (const GgufTensor& tensor : opened->tensors()) opened->Forget(tensor.data);
    EXPECT_EQ(FirstValue(*opened, "c"), 3);
  }
}

TEST_F(SplitTest, ACountOfOneOrZeroIsAWholeFile) {
  for (const uint16_t count : {0, 1}) {
    Part part = parts_[1];
    part.number = 0;
    part.count = count;
    const auto file = GgufFile::Open(Make("whole.gguf", BytesOf(part)));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->num_files(), 1u);
    EXPECT_EQ(FirstValue(*file, "b"), 2);
  }
}

TEST_F(SplitTest, AMissingPartIsNamed) {
  WriteParts();
  unlink(PathOf(2).c_str());
  for (const size_t i : {1, 3}) {
    const absl::Status status = GgufFile::Open(PathOf(i)).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << status;
    EXPECT_THAT(
        std::string(status.message()),
        AllOf(HasSubstr(PathOf(i)), HasSubstr("part 2 of 3, " + PathOf(2) + ", is missing")));
  }
}

TEST_F(SplitTest, ARenamedPartSaysHowItMustBeCalled) {
  const auto file = GgufFile::Open(Make("sha256-1234", BytesOf(parts_[1])));
  EXPECT_THAT(std::string(file.status().message()),
              AllOf(HasSubstr("part 2 of 3"), HasSubstr("must end in -00002-of-00003.gguf")));
  const auto other = GgufFile::Open(Make("m-00001-of-00003.gguf", BytesOf(parts_[1])));
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("-00002-of-00003.gguf"));
}

TEST_F(SplitTest, PartsMustAgree) {
  const std::vector<Part> right = parts_;
  parts_[1].number = 2;
  EXPECT_THAT(Message(), AllOf(HasSubstr(PathOf(2)), HasSubstr("must be part 2 of 3"),
                               HasSubstr("says that it is part 3 of 3")));
  parts_ = right;
  parts_[2].count = 4;
  EXPECT_THAT(Message(), AllOf(HasSubstr(PathOf(3)), HasSubstr("part 3 of 4")));
  parts_ = right;
  parts_[2].count = std::nullopt;
  EXPECT_THAT(Message(), AllOf(HasSubstr(PathOf(3)), HasSubstr("whole")));
  parts_ = right;
  parts_[1].total = 4;
  EXPECT_THAT(Message(), AllOf(HasSubstr(PathOf(2)), HasSubstr("'split.tensors.count' differs")));
  parts_ = right;
  for (Part& part : parts_) part.total = 4;
  EXPECT_THAT(Message(), AllOf(HasSubstr("have 3 tensors"), HasSubstr("is 4")));
  parts_ = right;
  parts_[0].number = 3;
  EXPECT_THAT(Message(), AllOf(HasSubstr("'split.no' is 3"), HasSubstr("only 3")));
}

TEST_F(SplitTest, ATensorInTwoPartsIsRefused) {
  parts_[2].tensors[0].first = "a";
  EXPECT_THAT(Message(), AllOf(HasSubstr(PathOf(3) + ": tensor 'a' is also in " + PathOf(2))));
}

TEST_F(SplitTest, ATruncatedPartIsNamed) {
  WriteParts();
  const std::string whole = BytesOf(parts_[2]);
  Make("m-00003-of-00003.gguf", whole.substr(0, whole.size() - 1));
  const absl::Status status = GgufFile::Open(PathOf(1)).status();
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(PathOf(3)), HasSubstr("is truncated"),
                    HasSubstr("has " + std::to_string(whole.size() - 1) + " bytes"),
                    HasSubstr("at least " + std::to_string(whole.size()))));
}

TEST_F(SplitTest, APartIsNotReadFromMemoryAlone) {
  const ParsedBytes parsed = ParseCopy(BytesOf(parts_[1]));
  EXPECT_THAT(std::string(parsed.file.status().message()),
              AllOf(HasSubstr("part 2 of 3"), HasSubstr("by the path of a file")));
}

// In a child process, since the guard stays.
TEST_F(SplitTest, EachPartIsGuarded) {
  WriteParts();
  const int status = InChild([&] {
    GuardMappedFiles();
    auto file = GgufFile::Open(PathOf(1));
    if (!file.ok() || !file->CheckWhole().ok()) _exit(1);
    if (truncate(PathOf(3).c_str(), 0) != 0) _exit(2);
    if (FirstValue(*file, "c") != 0) _exit(3);
    const absl::Status cut = file->CheckWhole();
    if (!absl::IsDataLoss(cut)) _exit(4);
    if (cut.message().find(PathOf(3)) == absl::string_view::npos) _exit(5);
  });
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SplitNameTest, IsReadFromThePath) {
  const auto name = SplitName::Parse("a/b-00002-of-00010.gguf");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->prefix, "a/b");
  EXPECT_EQ(name->number, 2u);
  EXPECT_EQ(name->count, 10u);
  EXPECT_EQ(name->PathOf(10), "a/b-00010-of-00010.gguf");
  for (const char* other :
       {"", ".gguf", "b.gguf", "b-00002-of-00010", "b-2-of-10.gguf", "b-00000-of-00010.gguf",
        "b-00011-of-00010.gguf", "b-0000x-of-00010.gguf", "b00002-of-00010.gguf", "00010.gguf"}) {
    EXPECT_FALSE(SplitName::Parse(other).has_value()) << other;
  }
}

TEST_F(SplitTest, PathsAreThoseThatExist) {
  WriteParts();
  EXPECT_THAT(GgufPaths(PathOf(2)), UnorderedElementsAre(PathOf(1), PathOf(2), PathOf(3)));
  unlink(PathOf(3).c_str());
  EXPECT_THAT(GgufPaths(PathOf(2)), UnorderedElementsAre(PathOf(1), PathOf(2)));
  EXPECT_THAT(GgufPaths("x.gguf"), ElementsAre("x.gguf"));
}

}  // namespace
}  // namespace inlay
