#include "serve/prefixes/known_states.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(KnownStatesTest, KnowsWhatWasAddedAndNotRemoved) {
  KnownStates known(absl::Hours(1));
  EXPECT_THAT(known.Lengths("root", 1000), IsEmpty());
  known.Add("root", 300, "a");
  known.Add("root", 256, "b");
  known.Add("root", 300, "c");
  known.Add("other", 400, "d");
  EXPECT_THAT(known.Lengths("root", 1000), ElementsAre(256u, 300u));
  EXPECT_THAT(known.Lengths("root", 299), ElementsAre(256u));
  EXPECT_TRUE(known.Has("root", 300, "a"));
  EXPECT_TRUE(known.Has("root", 300, "c"));
  EXPECT_FALSE(known.Has("root", 256, "a"));
  EXPECT_FALSE(known.Has("other", 300, "a"));
  known.Remove("root", 300, "a");
  known.Remove("none", 300, "a");
  EXPECT_FALSE(known.Has("root", 300, "a"));
  EXPECT_TRUE(known.Has("root", 300, "c"));
  known.Clear();
  EXPECT_FALSE(known.Has("root", 300, "c"));
}

// Nothing stays of states that are added and removed without end, as where the store has no place.
TEST(KnownStatesTest, NothingStaysOfWhatWasRemoved) {
  KnownStates known(absl::Hours(1));
  known.Add("root", 300, "a");
  known.Add("root", 300, "b");
  known.Add("root", 256, "c");
  known.Remove("root", 300, "a");
  EXPECT_THAT(known.Lengths("root", 1000), ElementsAre(256u, 300u));
  known.Remove("root", 300, "b");
  EXPECT_THAT(known.Lengths("root", 1000), ElementsAre(256u));
  known.Remove("root", 256, "c");
  EXPECT_THAT(known.Lengths("root", 1000), IsEmpty());
  known.Add("root", 300, "b");
  EXPECT_TRUE(known.Has("root", 300, "b"));
}

TEST(KnownStatesTest, ForgetsInTime) {
  KnownStates known(absl::Milliseconds(1));
  known.Add("root", 300, "a");
  absl::SleepFor(absl::Milliseconds(3));
  EXPECT_FALSE(known.Has("root", 300, "a"));
  known.Add("root", 300, "a");
  KnownStates lasting(absl::Hours(1));
  lasting.Add("root", 300, "a");
  EXPECT_TRUE(lasting.Has("root", 300, "a"));
}

TEST(KnownStatesTest, ItsMemoryIsBounded) {
  KnownStates known(absl::Hours(1));
  known.Add("first", 1, "a");
  for (int i = 0; i < (1 << 14); ++i) known.Add("root", 300, absl::StrCat(i));
  EXPECT_FALSE(known.Has("first", 1, "a"));
  EXPECT_TRUE(known.Has("root", 300, absl::StrCat((1 << 14) - 1)));
}

}  // namespace
}  // namespace inlay::serve
