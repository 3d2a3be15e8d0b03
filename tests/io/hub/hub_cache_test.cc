#include "io/hub/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utime.h>

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/io/file/folder_test.h"

namespace inlay {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kHash(64, 'a');
const std::string kOtherHash(64, 'b');
const std::string kOld(40, '0');
const std::string kNew(40, '1');

class HubCacheTest : public FolderTest<> {
 protected:
  HubCacheTest() : cache_(Path("hub")) {}

  void AddBlob(const std::string& hash, const std::string& bytes) {
    ASSERT_TRUE(cache_.MakeFolders(name_).ok());
    Make("hub/models--u--r/blobs/" + hash, bytes);
  }
  void Link(const std::string& commit, const std::string& path, const std::string& hash) {
    const absl::Status status = cache_.Link(name_, commit, path, hash);
    ASSERT_TRUE(status.ok()) << status;
  }
  std::string Snapshot(const std::string& commit) {
    return Path("hub/models--u--r/snapshots/" + commit);
  }
  // The file's contents that are found; or the error.
  std::string Found(const std::string& type = "") {
    HubName name = name_;
    name.type = type;
    const auto files = cache_.Find(name);
    return files.ok() ? Contents(files->front()) : std::string(files.status().message());
  }
  // Makes a snapshot `age` seconds old.
  void SetAge(const std::string& commit, int age) {
    const utimbuf times = {.actime = 1'000'000'000 - age, .modtime = 1'000'000'000 - age};
    ASSERT_EQ(utime(Snapshot(commit).c_str(), &times), 0);
  }

  const HubName name_ = HubName::Parse("u/r").value();
  HubCache cache_;
};

TEST_F(HubCacheTest, LinksReplaceWhatIsWrong) {
  AddBlob(kHash, "one");
  AddBlob(kOtherHash, "three");
  Link(kNew, "a/m.gguf", kHash);
  const std::string link = Snapshot(kNew) + "/a/m.gguf";
  EXPECT_EQ(fs::read_symlink(link), "../../../blobs/" + kHash);
  Link(kNew, "a/m.gguf", kOtherHash);
  EXPECT_EQ(fs::read_symlink(link), "../../../blobs/" + kOtherHash);
  Link(kNew, "a/m.gguf", kOtherHash);
  // A file instead of a link, of the same size (as without links) and of another.
  fs::remove(link);
  Make(link.substr(Path("").size()), "eerht");
  Link(kNew, "a/m.gguf", kOtherHash);
  EXPECT_FALSE(fs::is_symlink(link));
  Link(kNew, "a/m.gguf", kHash);
  EXPECT_TRUE(fs::is_symlink(link));
  // A folder stays.
  fs::create_directories(Snapshot(kNew) + "/b.gguf/c");
  EXPECT_FALSE(cache_.Link(name_, kNew, "b.gguf", kHash).ok());
  EXPECT_FALSE(cache_.Link(name_, kNew, "../b.gguf", kHash).ok());
}

TEST_F(HubCacheTest, FindsTheSnapshotOfMainOrElseTheNewest) {
  EXPECT_THAT(Found(), HasSubstr("has no u/r"));
  AddBlob(kHash, "old");
  AddBlob(kOtherHash, "new");
  Link(kOld, "m-Q4_K_M.gguf", kHash);
  Link(kOld, "m-Q8_0.gguf", kHash);
  Link(kNew, "m-Q4_K_M.gguf", kOtherHash);
  SetAge(kOld, 2);
  SetAge(kNew, 1);
  EXPECT_EQ(Found(), "new");
  SetAge(kNew, 3);
  EXPECT_EQ(Found(), "old");
  ASSERT_TRUE(cache_.WriteRef(name_, kNew).ok());
  ASSERT_TRUE(cache_.WriteRef(name_, kNew).ok());
  EXPECT_EQ(Contents(Path("hub/models--u--r/refs/main")), kNew);
  EXPECT_EQ(Found(), "new");
  EXPECT_EQ(Found("Q8_0"), "old");
  EXPECT_THAT(Found("Q2_K"), HasSubstr("has no 'Q2_K'"));
  ASSERT_TRUE(cache_.WriteRef(name_, kOld).ok());
  EXPECT_EQ(Found(), "old");
  // A link to a blob that is gone is none.
  fs::remove(Path("hub/models--u--r/blobs/" + kHash));
  EXPECT_EQ(Found(), "new");
}

TEST_F(HubCacheTest, WritesMainThroughNoLink) {
  const std::string ref = Path("hub/models--u--r/refs/main");
  fs::create_directories(Path("hub/models--u--r/refs"));
  Make("victim", "precious");
  // A link to a file, and one to nothing.
  for (const char* target : {"victim", "none"}) {
    fs::remove(ref);
    fs::create_symlink(Path(target), ref);
    const absl::Status status = cache_.WriteRef(name_, kNew);
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_FALSE(fs::is_symlink(ref));
    EXPECT_EQ(Contents(ref), kNew);
  }
  EXPECT_EQ(Contents(Path("victim")), "precious");
  EXPECT_FALSE(fs::exists(Path("none")));
}

TEST_F(HubCacheTest, FindsNoPartsOfAModel) {
  AddBlob(kHash, "part");
  Link(kOld, "m-00001-of-00002.gguf", kHash);
  EXPECT_THAT(Found(), HasSubstr("has 1 of the 2 parts"));
  Link(kOld, "m-00002-of-00002.gguf", kHash);
  EXPECT_EQ(Found(), "part");
}

TEST_F(HubCacheTest, ListsEachModelOnce) {
  EXPECT_THAT(cache_.List(), IsEmpty());
  AddBlob(kHash, "old");
  AddBlob(kOtherHash, "new");
  Link(kOld, "m-Q4_K_M.gguf", kHash);
  Link(kNew, "m-Q4_K_M.gguf", kHash);
  Link(kNew, "sub/other.gguf", kOtherHash);
  Link(kNew, "mmproj-F16.gguf", kOtherHash);
  Link(kNew, "config.json", kOtherHash);
  ASSERT_TRUE(cache_.WriteRef(name_, kNew).ok());
  fs::create_directories(Path("hub/datasets--u--r/snapshots/x"));
  Make("hub/datasets--u--r/snapshots/x/m.gguf", "no model");
  Make("hub/version.txt", "1");
  std::vector<std::string> names;
  for (const LocalModel& model : cache_.List()) {
    EXPECT_EQ(model.source, "hub");
    EXPECT_THAT(model.path, HasSubstr(kNew));
    names.push_back(model.name);
  }
  EXPECT_THAT(names, ElementsAre("u/r:Q4_K_M", "u/r:sub/other.gguf"));
}

}  // namespace
}  // namespace inlay
