// Models inside programs' files.
#include "io/file/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_stream.h"
#include "io/gguf/gguf.h"
#include "tests/io/gguf/gguf_bytes.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

class BundleTest : public ::testing::Test {
 protected:
  std::string Path(const std::string& name) const { return folder_.Path(name); }

  // A file of these bytes.
  std::string Write(const std::string& name, absl::string_view bytes) {
    AtomicFile file = *AtomicFile::Create(Path(name));
    EXPECT_TRUE(file.Write(AsBytes(bytes)).ok());
    EXPECT_TRUE(file.Commit().ok());
    return Path(name);
  }

  std::string Bundle(const std::string& program, absl::string_view model, const std::string& name) {
    absl::StatusOr<AtomicFile> file = BeginBundle(program, Path(name));
    EXPECT_TRUE(file.ok()) << file.status();
    const uint64_t offset = file->size();
    EXPECT_TRUE(file->Write(AsBytes(model)).ok());
    EXPECT_TRUE(EndBundle(*std::move(file), offset).ok());
    return Path(name);
  }

  std::string BytesOf(const std::string& path) {
    const MappedFile file = *MappedFile::Open(path);
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }

  const TempFolder folder_;
};

TEST_F(BundleTest, HoldsTheProgramAndTheModel) {
  const std::string program(70000, 'p');
  const std::string bundle = Bundle(Write("program", program), "a model", "bundle");
  const std::string bytes = BytesOf(bundle);
  EXPECT_EQ(bytes.substr(0, program.size()), program);
  EXPECT_EQ(bytes.size(), 2 * kBundleAlignment + 7 + 24);
  const auto found = FindBundle(AsBytes(bytes), "x");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(std::string(found->begin(), found->end()), "a model");
  struct stat info;
  ASSERT_EQ(stat(bundle.c_str(), &info), 0);
  EXPECT_NE(info.st_mode & S_IXUSR, 0u);
}

TEST_F(BundleTest, ReplacesTheModelOfABundle) {
  const std::string program = Write("program", std::string(1000, 'p'));
  const std::string first = Bundle(program, "a model", "first");
  EXPECT_EQ(BytesOf(Bundle(first, "another", "second")),
            BytesOf(Bundle(program, "another", "third")));
}

// A program with this library, which this test is: in its copy one byte differs.
TEST_F(BundleTest, MarksTheProgram) {
  EXPECT_FALSE(RunsAsBundle());
  const std::string self = "/proc/self/exe";
  const std::string before = BytesOf(self);
  const std::string after = BytesOf(Bundle(self, "a model", "bundle"));
  size_t changed = 0;
  for (size_t i = 0; i < before.size(); ++i) changed += before[i] != after[i];
  EXPECT_EQ(changed, 1u);
  const std::string again = BytesOf(Bundle(Path("bundle"), "a model", "again"));
  EXPECT_TRUE(after == again);
}

TEST_F(BundleTest, OpensAsAModelFile) {
  const std::string path = Bundle(Write("program", "#!/bin/sh\n"), SmallFile(), "bundle");
  const absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ(file->name(), path);
  EXPECT_EQ(file->file_size(), SmallFile().size());
}

// As strip leaves a bundle: the program, with the mark.
TEST_F(BundleTest, SaysWhenItsModelIsMissing) {
  const std::string self = "/proc/self/exe";
  const std::string program =
      Write("stripped", BytesOf(Bundle(self, "a model", "bundle")).substr(0, BytesOf(self).size()));
  const absl::Status status = GgufFile::Open(program).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(
      status.message(),
      program + " was made with a model inside, which is missing: the file was cut or stripped");
  EXPECT_THAT(std::string(GgufFile::Open(self).status().message()),
              HasSubstr("not a GGUF file: it starts with"));
}

TEST_F(BundleTest, OtherFilesHoldNone) {
  for (const std::string& bytes : {std::string(), std::string(23, 'x'), SmallFile()}) {
    const auto found = FindBundle(AsBytes(bytes), "x");
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_TRUE(found->empty());
  }
}

TEST_F(BundleTest, DamagedTrailersAreRefused) {
  const std::string good =
      BytesOf(Bundle(Write("program", std::string(100, 'p')), "a model", "bundle"));
  const size_t trailer = good.size() - 24;
  const auto refused = [&](uint64_t offset, uint64_t size) {
    std::string bytes = good;
    std::memcpy(&bytes[trailer], &offset, 8);
    std::memcpy(&bytes[trailer + 8], &size, 8);
    const auto found = FindBundle(AsBytes(bytes), "prog");
    ASSERT_FALSE(found.ok()) << offset << " " << size;
    EXPECT_THAT(std::string(found.status().message()),
                AllOf(HasSubstr("prog: the bundled model"), HasSubstr(std::to_string(size))));
  };
  const uint64_t at = kBundleAlignment;
  refused(at, 6);
  refused(at, 8);
  refused(at, UINT64_MAX);
  refused(at, UINT64_MAX - at + 8);
  refused(2 * at, 7);
  refused(2 * at, 7 - at);  // wraps around
  refused(UINT64_MAX - at + 1, 7);
  refused(at + 1, 6);
  // A cut in front: the trailer is whole, but what it says is not.
  const auto cut = FindBundle(AsBytes(good).subspan(64), "prog");
  EXPECT_FALSE(cut.ok());
}

}  // namespace
}  // namespace inlay
