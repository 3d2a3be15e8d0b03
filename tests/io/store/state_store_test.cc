// States in memory and in files.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "io/store/state_store_file.h"
#include "io/store/state_store_memory.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

class StateStoreTest : public ::testing::Test {
 protected:
  void SetUp() override { file_ = std::make_unique<FileStore>(folder_); }

  template <class F>
  void ForBoth(F f) {
    f(memory_);
    f(*file_);
  }

  const TempFolder temp_;
  const std::string folder_ = temp_.path();
  MemoryStore memory_;
  std::unique_ptr<FileStore> file_;
};

TEST_F(StateStoreTest, RoundTrips) { ForBoth(CheckRoundTrips); }
TEST_F(StateStoreTest, Beginnings) { ForBoth(CheckBeginnings); }
TEST_F(StateStoreTest, Replacing) { ForBoth(CheckReplacing); }
TEST_F(StateStoreTest, Deleting) { ForBoth(CheckDeleting); }
TEST_F(StateStoreTest, Keys) { ForBoth(CheckKeys); }
TEST_F(StateStoreTest, ConcurrentUse) { ForBoth(CheckConcurrentUse); }

TEST_F(StateStoreTest, Tags) {
  ForBoth([](StateStore& store) { CheckTags(store, store); });
}
TEST_F(StateStoreTest, RacingTags) {
  ForBoth([](StateStore& store) { CheckRacingTags(store, store); });
}

// Those of before this object: each is one state until this object stores another.
TEST_F(StateStoreTest, TagsOfFilesThatWereFound) {
  ASSERT_TRUE(PutState(*file_, "a", {1}).ok());
  FileStore later(folder_);
  const StateTag tag = TagOf(later, "a");
  EXPECT_NE(tag, kNoStateTag);
  EXPECT_TRUE(PutOver(later, "a", tag, 2).ok());
  EXPECT_EQ(PutOver(later, "a", tag, 3).code(), absl::StatusCode::kAborted);
  ExpectState(later, "a", {2});
}

// It is still there, so whoever has read it may replace it.
TEST_F(StateStoreTest, AFileThatCannotBeDeletedKeepsItsTag) {
  ASSERT_TRUE(PutState(*file_, "a", {1}).ok());
  const StateTag tag = Must(file_->Get("a"))->tag();
  const std::string path = folder_ + "/a.state";
  std::filesystem::rename(path, folder_ + "/away");
  std::filesystem::create_directory(path);  // which unlink refuses, also where root calls it
  const absl::Status status = file_->Delete("a");
  std::filesystem::remove(path);
  std::filesystem::rename(folder_ + "/away", path);
  EXPECT_FALSE(status.ok() || absl::IsNotFound(status)) << status;
  EXPECT_EQ(Must(file_->Get("a"))->tag(), tag);
}

TEST_F(StateStoreTest, Listing) {
  ForBoth([](StateStore& store) { CheckListing(store, 100); });
}

TEST_F(StateStoreTest, Counting) {
  CheckCounting(memory_, memory_);
  FileStore other(folder_);
  CheckCounting(*file_, other);
}
TEST_F(StateStoreTest, KnownCounts) {
  ASSERT_TRUE(PutState(*file_, "before", {1}).ok());
  EXPECT_EQ(file_->KnownCount(), std::nullopt);
  EXPECT_EQ(memory_.KnownCount(), 0u);
  ASSERT_TRUE(PutState(memory_, "before", {1}).ok());
  ForBoth([](StateStore& store) {
    EXPECT_EQ(CountStates(store, ""), 1u);
    EXPECT_EQ(store.KnownCount(), 1u);
    for (const char* key : {"a.1", "a.2", "a.2", "b"}) ASSERT_TRUE(PutState(store, key, {1}).ok());
    EXPECT_EQ(store.KnownCount(), 4u);
    ASSERT_TRUE(store.Delete("b").ok());
    EXPECT_EQ(store.KnownCount(), 3u);
  });
  // As another program does.
  std::filesystem::remove(folder_ + "/a.1.state");
  EXPECT_EQ(file_->KnownCount(), 3u);
  ListStates(*file_, "a.");
  EXPECT_EQ(file_->KnownCount(), 2u);
  // For a state that is unused.
  ASSERT_TRUE(file_->ListUnused("", absl::Seconds(1)).ok());
  ASSERT_TRUE(file_->DeleteUnused("a.2", -absl::Seconds(1)).ok());
  EXPECT_EQ(file_->KnownCount(), 1u);
}
TEST_F(StateStoreTest, CountingMeanwhile) { ForBoth(CheckCountingMeanwhile); }

// The limit is on what is listed, not on what there is.
TEST_F(StateStoreTest, MoreThanAListMayHave) {
  for (size_t i = 0; i <= StateStore::kMostListed; ++i) {
    ASSERT_TRUE(PutState(memory_, "many." + std::to_string(i), {}).ok());
  }
  ASSERT_TRUE(PutState(memory_, "few.1", {}).ok());
  EXPECT_EQ(ListStates(memory_, "few."), std::vector<std::string>{"few.1"});
  EXPECT_EQ(CountStates(memory_, "many."), StateStore::kMostListed + 1);
  const absl::Status many = memory_.List("many.").status();
  EXPECT_EQ(many.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(many.message(), "more than 100000 states have keys that begin with 'many.'");
}

TEST_F(StateStoreTest, MoreFilesThanAListMayHave) {
  // Names of two files, which are made faster than files; a file cannot have them all.
  const std::string files[2] = {folder_ + "/many.0.state", folder_ + "/many.1.state"};
  for (const std::string& file : files) std::ofstream(file) << "x";
  for (size_t i = 2; i <= StateStore::kMostListed; ++i) {
    const std::string name = folder_ + "/many." + std::to_string(i) + ".state";
    ASSERT_EQ(link(files[i % 2].c_str(), name.c_str()), 0) << name;
  }
  ASSERT_TRUE(PutState(*file_, "few.1", {}).ok());
  EXPECT_EQ(ListStates(*file_, "few."), std::vector<std::string>{"few.1"});
  EXPECT_EQ(CountStates(*file_, "few."), 1u);
  EXPECT_EQ(CountStates(*file_, "many."), StateStore::kMostListed + 1);
  EXPECT_EQ(file_->List("many.").status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(StateStoreTest, MemoryHasABound) {
  MemoryStore store(1000);
  ASSERT_TRUE(PutState(store, "a", RandomBytes(600, 1)).ok());
  EXPECT_EQ(PutState(store, "b", RandomBytes(401, 2)).code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(PutState(store, "b", RandomBytes(400, 2)).ok());
  // What is replaced or deleted makes room.
  ASSERT_TRUE(PutState(store, "a", RandomBytes(500, 3)).ok());
  EXPECT_FALSE(PutState(store, "a", RandomBytes(601, 3)).ok());
  ExpectState(store, "a", RandomBytes(500, 3));
  ASSERT_TRUE(store.Delete("a").ok());
  EXPECT_TRUE(PutState(store, "c", RandomBytes(600, 4)).ok());
}

// Neither what other programs keep in the folder nor what a killed one left.
TEST_F(StateStoreTest, FilesThatAreNotListed) {
  ASSERT_TRUE(PutState(*file_, "mine", {1}).ok());
  for (const char* name : {"notes.txt", "mine.state.1a2b3c4d", ".state", ".hidden.state",
                           "with space.state", "state", "mine.state.lock"})
    std::ofstream(folder_ + "/" + name) << "x";
  ASSERT_EQ(mkfifo((folder_ + "/pipe.state").c_str(), 0600), 0);
  ASSERT_EQ(mkdir((folder_ + "/folder.state").c_str(), 0700), 0);
  ASSERT_EQ(symlink("nowhere", (folder_ + "/link.state").c_str()), 0);
  EXPECT_EQ(ListStates(*file_, ""), std::vector<std::string>{"mine"});
}

TEST_F(StateStoreTest, FilesLeaveNothingBehind) {
  CheckReplacing(*file_);
  ASSERT_TRUE(file_->Delete("replaced").ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

// They hold conversations.
TEST_F(StateStoreTest, FilesAreTheirOwnersAlone) {
  const std::string path = folder_ + "/talk.state";
  const auto mode = [&] {
    struct stat info {};
    EXPECT_EQ(stat(path.c_str(), &info), 0);
    return info.st_mode & 0777;
  };
  ASSERT_TRUE(PutState(*file_, "talk", RandomBytes(1000, 1)).ok());
  EXPECT_EQ(mode(), 0600u);
  ASSERT_EQ(chmod(path.c_str(), 0640), 0);
  ASSERT_TRUE(PutState(*file_, "talk", RandomBytes(1000, 2)).ok());
  EXPECT_EQ(mode(), 0640u);
}

// Whatever a state is, another may take its place under the key.
TEST_F(StateStoreTest, FilesOfAnyKindOfState) {
  for (const absl::string_view first : {kSessionMagic, kChatMagic, absl::string_view("any")}) {
    for (const absl::string_view then : {kSessionMagic, kChatMagic, absl::string_view("any")}) {
      ASSERT_TRUE(PutState(*file_, "a", StateBytes(first.begin(), first.end())).ok());
      EXPECT_TRUE(PutState(*file_, "a", StateBytes(then.begin(), then.end())).ok());
    }
  }
}

TEST_F(StateStoreTest, FolderThatIsMissing) {
  FileStore store(folder_ + "/nowhere");
  EXPECT_EQ(store.Put("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.Get("a").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.Delete("a").code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(store.List("").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StateStoreTest, NotARegularFile) {
  ASSERT_EQ(mkfifo((folder_ + "/pipe.state").c_str(), 0600), 0);
  EXPECT_EQ(file_->Get("pipe").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(file_->Put("pipe").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ReadStateFile(folder_).ok());
}

TEST_F(StateStoreTest, FileThatShrinksWhileItIsRead) {
  ASSERT_TRUE(PutState(*file_, "a", RandomBytes(1000, 1)).ok());
  auto reader = file_->Get("a");
  ASSERT_TRUE(reader.ok());
  ASSERT_EQ(truncate((folder_ + "/a.state").c_str(), 10), 0);
  StateBytes bytes(1000);
  EXPECT_EQ((*reader)->Read(absl::MakeSpan(bytes)).code(), absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace inlay
