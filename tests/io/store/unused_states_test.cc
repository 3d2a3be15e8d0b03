// States that nobody uses, in memory and in files, also where the system's clock is set or wrong.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "io/store/state_store_file.h"
#include "io/store/state_store_memory.h"
#include "tests/io/store/state_store_contract.h"
#include "tests/must.h"
#include "tests/temp_folder.h"

namespace inlay {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr absl::Duration kTime = absl::Seconds(60);
constexpr absl::Duration kYear = absl::Hours(24 * 365);

class UnusedStatesTest : public ::testing::Test {
 protected:
  std::unique_ptr<FileStore> OpenFiles() {
    return std::make_unique<FileStore>(
        folder_.path(),
        FileStoreClocks{.steady = [this] { return now_; }, .system = [this] { return system_; }});
  }
  template <class F>
  void ForBoth(F f) {
    MemoryStore memory(1000, [this] { return now_; });
    f(memory);
    f(*OpenFiles());
  }
  // The file of a state, or the folder, was last changed so long before start_.
  void SetChange(const std::string& name, absl::Duration before) {
    const timespec time = absl::ToTimespec(start_ - before);
    const timespec times[2] = {time, time};
    ASSERT_EQ(utimensat(AT_FDCWD, folder_.Path(name).c_str(), times, 0), 0) << name;
  }
  // A state of an earlier process.
  void AddOld(const std::string& key, absl::Duration before) {
    std::ofstream(folder_.Path(key + ".state")) << "old";
    SetChange(key + ".state", before);
  }
  static std::vector<std::string> Unused(StateStore& store, absl::Duration time = kTime) {
    return Must(store.ListUnused("", time));
  }

  const TempFolder folder_;
  const absl::Time start_ = absl::FromUnixSeconds(1'700'000'000);
  absl::Time system_ = start_;
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(7);  // of the clock that is never set
};

TEST_F(UnusedStatesTest, AreListedAndDeleted) {
  ForBoth([this](StateStore& store) {
    for (const char* key : {"a.1", "a.2", "b"}) ASSERT_TRUE(PutState(store, key, {1}).ok());
    now_ += kTime - absl::Seconds(1);
    EXPECT_THAT(Unused(store), IsEmpty());
    now_ += absl::Seconds(1);
    EXPECT_THAT(Unused(store), UnorderedElementsAre("a.1", "a.2", "b"));
    EXPECT_THAT(Must(store.ListUnused("a.", kTime)), UnorderedElementsAre("a.1", "a.2"));
    // Get is no use.
    ExpectState(store, "a.1", {1});
    ASSERT_TRUE(store.MarkUsed("a.2").ok());
    ASSERT_TRUE(PutState(store, "b", {2}).ok());
    EXPECT_THAT(Unused(store), UnorderedElementsAre("a.1"));
    // They were used since they were listed.
    for (const char* key : {"a.1", "a.2", "b"}) EXPECT_TRUE(store.DeleteUnused(key, kTime).ok());
    EXPECT_EQ(ListStates(store, ""), (std::vector<std::string>{"a.2", "b"}));
    EXPECT_EQ(CountStates(store, ""), 2u);
    // What was deleted is not there any more, and no error.
    EXPECT_TRUE(store.MarkUsed("a.1").ok());
    EXPECT_TRUE(store.DeleteUnused("a.1", kTime).ok());
    EXPECT_EQ(store.Get("a.1").status().code(), absl::StatusCode::kNotFound);
    // Nobody can replace what was deleted.
    const StateTag tag = TagOf(store, "a.2");
    now_ += kTime;
    ASSERT_TRUE(store.DeleteUnused("a.2", kTime).ok());
    EXPECT_EQ(PutOver(store, "a.2", tag, 3).code(), absl::StatusCode::kAborted);
    EXPECT_FALSE(store.MarkUsed("no key").ok());
    EXPECT_FALSE(store.DeleteUnused("no key", kTime).ok());
  });
}

TEST_F(UnusedStatesTest, InMemoryMakeRoom) {
  MemoryStore store(1000, [this] { return now_; });
  ASSERT_TRUE(PutState(store, "a", StateBytes(1000)).ok());
  now_ += kTime;
  ASSERT_TRUE(store.DeleteUnused("a", kTime).ok());
  EXPECT_EQ(store.bytes(), 0u);
}

TEST_F(UnusedStatesTest, FilesOfEarlierProcesses) {
  AddOld("old", kTime);
  AddOld("young", kTime - absl::Seconds(1));
  AddOld("newest", absl::ZeroDuration());
  const auto store = OpenFiles();
  // Before anything was listed nothing is known.
  EXPECT_TRUE(store->DeleteUnused("old", kTime).ok());
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("old"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("old", "young"));
  ASSERT_TRUE(store->MarkUsed("young").ok());
  for (const char* key : {"old", "young", "newest"})
    EXPECT_TRUE(store->DeleteUnused(key, kTime).ok());
  EXPECT_EQ(ListStates(*store, ""), (std::vector<std::string>{"newest", "young"}));
}

// For the next process.
TEST_F(UnusedStatesTest, AFileTellsOfItsUse) {
  AddOld("a", kYear);
  ASSERT_TRUE(OpenFiles()->MarkUsed("a").ok());
  struct stat file = {};
  ASSERT_EQ(stat(folder_.Path("a.state").c_str(), &file), 0);
  EXPECT_GT(absl::TimeFromTimespec(file.st_mtim), start_);
}

TEST_F(UnusedStatesTest, SettingTheClockMeanwhileDeletesNothing) {
  AddOld("found", absl::ZeroDuration());
  const auto store = OpenFiles();
  EXPECT_THAT(Unused(*store), IsEmpty());
  for (const absl::Duration step : {kYear, -kYear}) {
    system_ = start_ + step;
    EXPECT_THAT(Unused(*store), IsEmpty());
    // As the system would date a file at that time.
    ASSERT_TRUE(PutState(*store, "stored", {1}).ok());
    SetChange("stored.state", -step);
    EXPECT_THAT(Unused(*store), IsEmpty());
    EXPECT_TRUE(store->DeleteUnused("stored", kTime).ok());
    EXPECT_EQ(CountStates(*store, "stored"), 1u);
  }
  // The clock has no say in what is to go, either.
  now_ += kTime;
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("found", "stored"));
}

// Half of the time is left to those that were used last.
TEST_F(UnusedStatesTest, AClockThatIsWrongAtTheStartDeletesNotAll) {
  AddOld("old", kTime / 2);
  AddOld("young", kTime / 2 - absl::Seconds(1));
  AddOld("newest", absl::ZeroDuration());
  SetChange("", kYear);
  system_ = start_ + kYear;
  const auto store = OpenFiles();
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("old"));
  now_ += absl::Seconds(1);
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("old", "young"));
  now_ += kTime / 2 - absl::Seconds(1);
  EXPECT_THAT(Unused(*store), UnorderedElementsAre("old", "young", "newest"));
}

// Otherwise no session would ever go of a server that is started anew each day, and whose sessions
// nobody uses.
TEST_F(UnusedStatesTest, AFolderThatWasInUseHasNoPause) {
  AddOld("old", kTime);
  SetChange("", absl::Seconds(1));
  EXPECT_THAT(Unused(*OpenFiles()), UnorderedElementsAre("old"));
  SetChange("", kTime);
  EXPECT_THAT(Unused(*OpenFiles()), IsEmpty());
}

// They tell of a clock that was ahead once, not of when the folder was in use.
TEST_F(UnusedStatesTest, TimesInTheFutureDoNotEndAPause) {
  AddOld("future", -kYear);
  AddOld("old", 2 * kTime);
  AddOld("newest", 2 * kTime - absl::Seconds(1));
  SetChange("", kYear);
  EXPECT_THAT(Unused(*OpenFiles()), IsEmpty());
}

TEST_F(UnusedStatesTest, AClockThatIsBehindAtTheStartDeletesNothing) {
  AddOld("old", 2 * kTime);
  AddOld("newest", absl::ZeroDuration());
  system_ = start_ - kYear;
  EXPECT_THAT(Unused(*OpenFiles()), IsEmpty());
}

TEST_F(UnusedStatesTest, AFolderThatIsMissingIsTold) {
  FileStore store(folder_.Path("nowhere"));
  EXPECT_EQ(store.ListUnused("", kTime).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace inlay
