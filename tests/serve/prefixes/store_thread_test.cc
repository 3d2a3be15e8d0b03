// The thread that waits for the store of snapshots: each job ends once, whatever becomes of the
// store.
#include "serve/prefixes/store_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// What jobs use is their own: this one can only be reached, or not.
class ReachedStore final : public SnapshotStore {
 public:
  explicit ReachedStore(std::atomic<int>* connects, absl::Status outcome = absl::OkStatus())
      : connects_(connects), outcome_(std::move(outcome)) {}

  absl::Status Connect() override {
    ++*connects_;
    return outcome_;
  }
  absl::StatusOr<std::vector<size_t>> Lengths(absl::string_view, absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<std::optional<Found>> Find(absl::string_view, absl::Span<const std::string>,
                                            absl::Duration) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<bool> Read(absl::string_view, uint64_t, size_t, absl::Duration,
                            std::string&) override {
    return absl::UnimplementedError("");
  }
  absl::StatusOr<bool> Write(absl::string_view, absl::string_view, size_t, absl::string_view,
                             const std::function<bool()>&) override {
    return absl::UnimplementedError("");
  }
  absl::Status Remove(absl::string_view) override { return absl::UnimplementedError(""); }

 private:
  std::atomic<int>* const connects_;
  const absl::Status outcome_;
};

class StoreThreadTest : public ::testing::Test {
 protected:
  // A job that appends `name` when it runs, waits for `may_end` and ends with `outcome`, and then
  // "end of" it. The list is to be read when the thread has ended.
  StoreThread::Job MakeJob(const std::string& name, absl::Notification* may_end = nullptr,
                           absl::Status outcome = absl::OkStatus()) {
    return {.run =
                [=, this](SnapshotStore&) {
                  seen_.push_back(name);
                  if (may_end != nullptr) may_end->WaitForNotification();
                  return outcome;
                },
            .end = [=, this] { seen_.push_back("end of " + name); }};
  }

  std::vector<std::string> noted_;
  OutageNotes notes_{[this](absl::string_view sentence) { noted_.emplace_back(sentence); }};
  std::atomic<int> connects_ = 0, lost_ = 0;
  std::vector<std::string> seen_;
};

TEST_F(StoreThreadTest, RunsJobsOneAfterTheOther) {
  {
    StoreThread thread(std::make_unique<ReachedStore>(&connects_), StoreUse::kReads,
                       absl::ZeroDuration(), notes_);
    EXPECT_TRUE(WaitUntil([&] { return thread.ready(); }));
    for (const char* name : {"a", "b"}) EXPECT_TRUE(thread.Add(MakeJob(name)));
    thread.Finish(absl::InfiniteDuration());
    EXPECT_EQ(thread.waiting(), 0u);
  }
  EXPECT_THAT(seen_, ElementsAre("a", "end of a", "b", "end of b"));
  EXPECT_EQ(connects_, 1);
}

TEST_F(StoreThreadTest, AfterAnErrorItConnectsAnew) {
  absl::Notification may_fail;
  {
    StoreThread thread(std::make_unique<ReachedStore>(&connects_), StoreUse::kReads,
                       absl::ZeroDuration(), notes_, [this] { ++lost_; });
    EXPECT_TRUE(WaitUntil([&] { return thread.ready(); }));
    EXPECT_TRUE(thread.Add(MakeJob("fails", &may_fail, absl::UnavailableError("gone"))));
    EXPECT_TRUE(thread.Add(MakeJob("waits")));
    EXPECT_EQ(thread.waiting(), 2u);
    may_fail.Notify();
    EXPECT_TRUE(WaitUntil([&] { return connects_ == 2 && thread.ready(); }));
    EXPECT_TRUE(thread.Add(MakeJob("later")));
    thread.Finish(absl::InfiniteDuration());
  }
  EXPECT_THAT(seen_, ElementsAre("fails", "end of fails", "end of waits", "later", "end of later"));
  EXPECT_EQ(lost_, 2) << "before each connection";
}

TEST_F(StoreThreadTest, TakesNoJobsWithoutAConnection) {
  {
    StoreThread thread(
        std::make_unique<ReachedStore>(&connects_, absl::UnavailableError("nobody there")),
        StoreUse::kReads, /*rest=*/absl::Hours(1), notes_);
    EXPECT_TRUE(WaitUntil([&] { return notes_.down() == 1; }));
    EXPECT_FALSE(thread.ready());
    EXPECT_FALSE(thread.Add(MakeJob("never")));
    thread.Finish(absl::InfiniteDuration());
  }
  EXPECT_TRUE(seen_.empty());
  EXPECT_THAT(noted_, ElementsAre(HasSubstr("nobody there")));
}

TEST_F(StoreThreadTest, ItsEndEndsAllJobs) {
  absl::Notification may_end;
  {
    StoreThread thread(std::make_unique<ReachedStore>(&connects_), StoreUse::kReads,
                       absl::ZeroDuration(), notes_);
    EXPECT_TRUE(WaitUntil([&] { return thread.ready(); }));
    EXPECT_TRUE(thread.Add(MakeJob("first", &may_end)));
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(thread.Add(MakeJob("other")));
    may_end.Notify();
  }
  EXPECT_EQ(std::count(seen_.begin(), seen_.end(), "end of first"), 1);
  EXPECT_EQ(std::count(seen_.begin(), seen_.end(), "end of other"), 3);
}

// A store that cannot be written, such as one on a full disk, may still be read: its operator is
// told which of both it is.
TEST(OutageNotesTest, TellWhetherPrefixesAreStillRead) {
  const std::string not_stored = "prefixes are not stored for now: why",
                    not_shared = "prefixes are not shared for now, and prompts are computed: why",
                    again = "prefixes are shared again";
  std::vector<std::string> noted;
  OutageNotes notes([&](absl::string_view sentence) { noted.emplace_back(sentence); });
  const absl::Status why = absl::UnavailableError("why");
  notes.Begin(StoreUse::kWrites, why);
  EXPECT_EQ(notes.down(), 1u);
  notes.End(StoreUse::kWrites);
  EXPECT_THAT(noted, ElementsAre(not_stored, again));
  noted.clear();
  notes.Begin(StoreUse::kWrites, why);
  notes.Begin(StoreUse::kReads, why);
  notes.End(StoreUse::kWrites);
  EXPECT_THAT(noted, ElementsAre(not_stored, not_shared));
  notes.End(StoreUse::kReads);
  EXPECT_THAT(noted, ElementsAre(not_stored, not_shared, again));
  noted.clear();
  notes.Begin(StoreUse::kReads, why);
  notes.Begin(StoreUse::kWrites, why);
  notes.End(StoreUse::kReads);
  notes.End(StoreUse::kWrites);
  EXPECT_THAT(noted, ElementsAre(not_shared, again));
}

// As where standard error is a pipe that nobody reads: the figures are still to be had.
TEST(OutageNotesTest, WhoIsToldHoldsUpNobodyElse) {
  std::function<size_t()> ask;
  std::vector<std::future<size_t>> answers;
  OutageNotes notes([&](absl::string_view) {
    answers.push_back(std::async(std::launch::async, ask));
    EXPECT_EQ(answers.back().wait_for(kLongWait), std::future_status::ready);
  });
  ask = [&] { return notes.down(); };
  notes.Begin(StoreUse::kReads, absl::UnavailableError("why"));
  notes.End(StoreUse::kReads);
  ASSERT_EQ(answers.size(), 2u);
  EXPECT_EQ(answers[0].get(), 1u);
  EXPECT_EQ(answers[1].get(), 0u);
}

}  // namespace
}  // namespace inlay::serve
