// What every store of snapshots must do, as functions that the tests of each call.
#ifndef INLAY_TESTS_IO_STORE_SNAPSHOT_STORE_CONTRACT_H_
#define INLAY_TESTS_IO_STORE_SNAPSHOT_STORE_CONTRACT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "io/store/snapshot_store.h"
#include "tests/must.h"

namespace inlay {

inline constexpr absl::Duration kSnapshotLimit = absl::Minutes(5);  // of what takes no time

inline bool NeverStop() { return false; }

inline std::string SnapshotValue(size_t bytes, char fill) {
  std::string value(bytes, fill);
  for (size_t i = 0; i < bytes; i += 1000) value[i] = static_cast<char>(i / 1000);
  return value;
}

inline bool WriteSnapshot(SnapshotStore& store, const std::string& name, const std::string& value,
                          size_t length = 7) {
  return Must(store.Write("root", name, length, value, NeverStop));
}

inline std::optional<size_t> FindSnapshot(SnapshotStore& store,
                                          const std::vector<std::string>& names) {
  const auto found = Must(store.Find("root", names, kSnapshotLimit));
  return found.has_value() ? std::optional(found->index) : std::nullopt;
}

// Of two stores in one place, both empty: leaves 11 bytes there.
inline void ExpectOneFindsWhatTheOtherWrote(SnapshotStore& one, SnapshotStore& other) {
  using ::testing::ElementsAre;
  using ::testing::IsEmpty;
  using ::testing::UnorderedElementsAre;
  const std::string value = SnapshotValue(2'500'000, 'a');
  EXPECT_THAT(Must(other.Lengths("root", kSnapshotLimit)), IsEmpty());
  EXPECT_EQ(FindSnapshot(other, {"long", "short"}), std::nullopt);
  EXPECT_TRUE(WriteSnapshot(one, "short", value, 300));
  EXPECT_TRUE(WriteSnapshot(one, "long", SnapshotValue(10, 'b'), 400));
  EXPECT_TRUE(Must(one.Write("another", "third", 500, "x", NeverStop)));
  EXPECT_THAT(Must(other.Lengths("root", kSnapshotLimit)), UnorderedElementsAre(300u, 400u));
  EXPECT_THAT(Must(other.Lengths("another", kSnapshotLimit)), ElementsAre(500u));
  const auto found = Must(other.Find("root", {"none", "short", "long"}, kSnapshotLimit));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->index, 1u) << "the first that is there";
  EXPECT_EQ(found->bytes, value.size());
  std::string read;
  for (uint64_t at = 0; at < found->bytes;) {
    const size_t size = std::min<uint64_t>(SnapshotStore::kPieceBytes, found->bytes - at);
    ASSERT_TRUE(Must(other.Read("short", at, size, kSnapshotLimit, read)));
    at += size;
  }
  EXPECT_EQ(read, value);
  EXPECT_FALSE(Must(other.Read("short", 2'499'999, 2, kSnapshotLimit, read))) << "it ends before";
  EXPECT_FALSE(Must(other.Read("none", 0, 1, kSnapshotLimit, read)));
  EXPECT_EQ(read, value) << "nothing was appended";
  ASSERT_TRUE(other.Remove("short").ok());
  EXPECT_EQ(FindSnapshot(one, {"short"}), std::nullopt);
  ASSERT_TRUE(other.Remove("short").ok()) << "it is gone already";
}

// Of two stores in one empty place with a budget of 10,000 bytes, where times of use differ if
// `step` lies between them.
inline void ExpectTheLeastRecentlyUsedGoesFirst(SnapshotStore& one, SnapshotStore& other,
                                                absl::Duration step) {
  for (const char* name : {"a", "b", "c"}) {
    EXPECT_TRUE(WriteSnapshot(one, name, SnapshotValue(3000, *name)));
    absl::SleepFor(step);
  }
  EXPECT_EQ(FindSnapshot(other, {"a"}), 0u);
  absl::SleepFor(step);
  EXPECT_TRUE(WriteSnapshot(one, "b", "it is there: used now"));
  absl::SleepFor(step);
  EXPECT_TRUE(WriteSnapshot(other, "d", SnapshotValue(3000, 'd')));
  EXPECT_EQ(FindSnapshot(one, {"c"}), std::nullopt);
  EXPECT_EQ(FindSnapshot(one, {"a"}), 0u);
  EXPECT_EQ(FindSnapshot(one, {"b"}), 0u);
  EXPECT_TRUE(WriteSnapshot(one, "e", SnapshotValue(10'000, 'e'))) << "all that there may be";
  EXPECT_EQ(FindSnapshot(one, {"a", "b", "c", "d", "e"}), 4u);
  EXPECT_FALSE(WriteSnapshot(one, "f", SnapshotValue(10'001, 'f')));
  EXPECT_FALSE(WriteSnapshot(one, "f", ""));
  EXPECT_EQ(FindSnapshot(one, {"e"}), 0u) << "nothing was evicted for it";
}

}  // namespace inlay

#endif  // INLAY_TESTS_IO_STORE_SNAPSHOT_STORE_CONTRACT_H_
