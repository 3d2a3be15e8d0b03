// Snapshots in a folder: what is found, what expires, the budget, and what else may be there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "io/store/open_snapshot_store.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kLimit = absl::Seconds(20);

bool Never() { return false; }

class SnapshotFolderTest : public ::testing::Test {
 protected:
  std::unique_ptr<SnapshotStore> Open(uint64_t budget = 1 << 30,
                                      absl::Duration expiry = absl::Hours(1)) const {
    auto store = Must(
        OpenSnapshotStore({.folder = folder_.path(), .budget_bytes = budget, .expiry = expiry}));
    EXPECT_TRUE(store->Connect().ok());
    return store;
  }

  uint64_t BytesThere() const {
    uint64_t sum = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::error_code gone;
      const uint64_t size = entry.file_size(gone);
      if (!gone) sum += size;
    }
    return sum;
  }

  static bool Write(SnapshotStore& store, const std::string& name, const std::string& value,
                    size_t length = 7) {
    return Must(store.Write("root", name, length, value, Never));
  }
  static std::optional<size_t> Find(SnapshotStore& store, const std::vector<std::string>& names) {
    const auto found = Must(store.Find("root", names, kLimit));
    return found.has_value() ? std::optional(found->index) : std::nullopt;
  }

  const TempFolder folder_;
};

TEST_F(SnapshotFolderTest, AnotherServerFindsWhatOneHasWritten) {
  const auto one = Open(), other = Open();
  std::string value(2'500'000, 'a');
  for (size_t i = 0; i < value.size(); i += 1000) value[i] = static_cast<char>(i / 1000);
  EXPECT_THAT(Must(other->Lengths("root", kLimit)), IsEmpty());
  EXPECT_EQ(Find(*other, {"long", "short"}), std::nullopt);
  EXPECT_TRUE(Write(*one, "short", value, 300));
  EXPECT_TRUE(Write(*one, "long", std::string(10, 'b'), 400));
  EXPECT_TRUE(Must(one->Write("another", "third", 500, "x", Never)));
  EXPECT_THAT(Must(other->Lengths("root", kLimit)), UnorderedElementsAre(300u, 400u));
  EXPECT_THAT(Must(other->Lengths("another", kLimit)), ElementsAre(500u));
  const auto found = Must(other->Find("root", {"none", "third", "short", "long"}, kLimit));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->index, 2u) << "the first that is there, of this root";
  EXPECT_EQ(found->bytes, value.size());
  std::string read;
  for (uint64_t at = 0; at < found->bytes;) {
    const size_t size = std::min<uint64_t>(SnapshotStore::kPieceBytes, found->bytes - at);
    ASSERT_TRUE(Must(other->Read("short", at, size, kLimit, read)));
    at += size;
  }
  EXPECT_EQ(read, value);
  EXPECT_FALSE(Must(other->Read("short", 2'499'999, 2, kLimit, read))) << "it ends before";
  EXPECT_FALSE(Must(other->Read("none", 0, 1, kLimit, read)));
  EXPECT_EQ(read, value) << "nothing was appended";
  ASSERT_TRUE(other->Remove("short").ok());
  EXPECT_EQ(Find(*one, {"short"}), std::nullopt);
  EXPECT_EQ(BytesThere(), 11u);
  ASSERT_TRUE(other->Remove("short").ok()) << "it is gone already";
}

TEST_F(SnapshotFolderTest, FilesAreTheOwnersAlone) {
  EXPECT_TRUE(Write(*Open(), "a", "x"));
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
    EXPECT_EQ(entry.status().permissions(),
              std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)
        << entry.path();
  }
}

// The first one stays: it is the same value.
TEST_F(SnapshotFolderTest, WrittenTwiceItIsThereOnce) {
  const auto one = Open(), other = Open();
  EXPECT_TRUE(Write(*one, "a", std::string(1000, 'a')));
  EXPECT_TRUE(Write(*other, "a", std::string(2000, 'b')));
  EXPECT_EQ(BytesThere(), 1000u);
}

TEST_F(SnapshotFolderTest, TheLeastRecentlyUsedGoesFirst) {
  const auto one = Open(10'000), other = Open(10'000);
  // File systems keep times in steps of some milliseconds.
  const auto later = [] { absl::SleepFor(absl::Milliseconds(20)); };
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(Write(*one, name, std::string(3000, *name)));
    later();
  }
  EXPECT_EQ(Find(*other, {"a"}), 0u);
  later();
  EXPECT_TRUE(Write(*one, "b", "it is there: used now"));
  later();
  EXPECT_TRUE(Write(*other, "d", std::string(3000, 'd')));
  EXPECT_EQ(Find(*one, {"c"}), std::nullopt);
  EXPECT_EQ(Find(*one, {"a"}), 0u);
  EXPECT_EQ(Find(*one, {"b"}), 0u);
  EXPECT_TRUE(Write(*one, "e", std::string(10'000, 'e'))) << "all that there may be";
  EXPECT_EQ(Find(*one, {"a", "b", "c", "d", "e"}), 4u);
  EXPECT_FALSE(Write(*one, "f", std::string(10'001, 'f')));
  EXPECT_FALSE(Write(*one, "f", ""));
  EXPECT_EQ(Find(*one, {"e"}), 0u) << "nothing was evicted for it";
}

TEST_F(SnapshotFolderTest, TheBudgetHoldsWithSeveralWriters) {
  static constexpr uint64_t kBudget = 5'000'000;
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([this, t] {
      const auto store = Open(kBudget);
      for (int i = 0; i < 12; ++i) {
        const std::string value(static_cast<size_t>(700'000 + 300'000 * t), 'x');
        EXPECT_TRUE(Write(*store, absl::StrCat(t, ".", i), value));
      }
    });
  }
  std::thread watcher([this] {
    for (int i = 0; i < 100; ++i) EXPECT_LE(BytesThere(), kBudget);
  });
  for (std::thread& writer : writers) writer.join();
  watcher.join();
  EXPECT_GT(BytesThere(), kBudget / 2);
  EXPECT_LE(BytesThere(), kBudget);
}

TEST_F(SnapshotFolderTest, ExpireWhenTheyAreNotUsed) {
  const auto store = Open(10'000, absl::Milliseconds(300));
  EXPECT_TRUE(Write(*store, "a", "x"));
  EXPECT_TRUE(Write(*store, "b", "x"));
  absl::SleepFor(absl::Milliseconds(400));
  EXPECT_EQ(Find(*store, {"a"}), 0u) << "it is there until room is made, and used now";
  EXPECT_TRUE(Write(*store, "c", "x"));
  EXPECT_EQ(Find(*store, {"b"}), std::nullopt);
  EXPECT_EQ(Find(*store, {"a"}), 0u);
}

TEST_F(SnapshotFolderTest, AWriterThatStopsLeavesNothing) {
  const auto store = Open();
  int pieces = 0;
  const auto stops = [&pieces] { return ++pieces > 2; };
  EXPECT_FALSE(Must(store->Write("root", "a", 7, std::string(3'500'000, 'a'), stops)));
  EXPECT_EQ(Find(*store, {"a"}), std::nullopt);
  EXPECT_EQ(BytesThere(), 0u);
}

TEST_F(SnapshotFolderTest, OtherFilesStayAndAreNoSnapshots) {
  const std::vector<std::string> others = {"notes.txt", "a=root=7", "a=root=x.prefix",
                                           "root=7.prefix", "=.prefix"};
  for (const std::string& name : others) std::ofstream(folder_.Path(name)) << "mine";
  std::filesystem::create_directory(folder_.Path("a=root=7.prefix"));
  const auto store = Open(10);
  EXPECT_THAT(Must(store->Lengths("root", kLimit)), IsEmpty());
  EXPECT_EQ(Find(*store, {"a"}), std::nullopt);
  EXPECT_TRUE(Write(*store, "b", "0123456789"));
  EXPECT_TRUE(Write(*store, "c", "0123456789"));
  EXPECT_EQ(Find(*store, {"b"}), std::nullopt);
  for (const std::string& name : others)
    EXPECT_TRUE(std::filesystem::exists(folder_.Path(name))) << name;
}

TEST_F(SnapshotFolderTest, AFolderThatGoesIsAnError) {
  const std::string path = folder_.Path("inner");
  const auto store = Must(OpenSnapshotStore({.folder = path}));
  EXPECT_EQ(store->Lengths("root", kLimit).status().code(), absl::StatusCode::kFailedPrecondition)
      << "it is not connected";
  EXPECT_THAT(store->Connect().message(), HasSubstr("cannot open the folder " + path));
  std::filesystem::create_directory(path);
  ASSERT_TRUE(store->Connect().ok());
  EXPECT_TRUE(Write(*store, "a", "x"));
  EXPECT_EQ(store->Lengths("root", absl::ZeroDuration()).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  std::filesystem::remove_all(path);
  EXPECT_EQ(store->Lengths("root", kLimit).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(store->Write("root", "b", 7, "x", Never).ok());
}

}  // namespace
}  // namespace inlay
