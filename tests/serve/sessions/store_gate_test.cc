// The gate before a store that hangs: when it closes, and how it opens again.
#include "serve/sessions/store_gate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>

namespace inlay::serve {
namespace {

class StoreGateTest : public ::testing::Test {
 protected:
  // A use of the store that ends so; counted where it comes to be.
  absl::Status Use(StoreGate& gate, const absl::Status& outcome) {
    return gate.Run([&] {
      ++uses_;
      return outcome;
    });
  }

  const absl::Status away_ = absl::UnavailableError("away");
  int uses_ = 0;
};

TEST_F(StoreGateTest, AUseThatHasWaitedInVainClosesIt) {
  StoreGate gate(/*long_wait=*/absl::ZeroDuration(), /*rest=*/absl::InfiniteDuration());
  EXPECT_EQ(Use(gate, absl::OkStatus()), absl::OkStatus());
  EXPECT_EQ(Use(gate, absl::NotFoundError("none")), absl::NotFoundError("none"));
  EXPECT_EQ(Use(gate, away_), away_);
  EXPECT_EQ(uses_, 3);
  for (int i = 0; i < 3; ++i) {
    const absl::Status refused = Use(gate, absl::OkStatus());
    EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(refused.message()), testing::HasSubstr("does not answer"));
  }
  EXPECT_EQ(uses_, 3);
}

TEST_F(StoreGateTest, AUseThatFailsAtOnceKeepsNobodyWaiting) {
  StoreGate gate(/*long_wait=*/absl::InfiniteDuration(), /*rest=*/absl::InfiniteDuration());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Use(gate, away_), away_);
  EXPECT_EQ(uses_, 3);
}

TEST_F(StoreGateTest, OneUseAtATimeTriesAgain) {
  StoreGate gate(/*long_wait=*/absl::ZeroDuration(), /*rest=*/absl::ZeroDuration());
  EXPECT_EQ(Use(gate, away_), away_);
  EXPECT_EQ(gate.Run([&] {
    EXPECT_TRUE(absl::IsUnavailable(Use(gate, absl::OkStatus()))) << "while this one tries";
    return away_;
  }),
            away_);
  EXPECT_EQ(uses_, 1);
  EXPECT_EQ(Use(gate, absl::NotFoundError("none")), absl::NotFoundError("none"));
  // That was an answer: the gate is open, for several at a time.
  const absl::StatusOr<int> both = gate.Run([&]() -> absl::StatusOr<int> {
    EXPECT_EQ(Use(gate, absl::OkStatus()), absl::OkStatus());
    return 2;
  });
  ASSERT_TRUE(both.ok());
  EXPECT_EQ(*both, 2);
}

// Else the one that tries would be waited for ever.
TEST_F(StoreGateTest, AUseWithoutMemoryEndsAsOthersDo) {
  StoreGate gate(/*long_wait=*/absl::ZeroDuration(), /*rest=*/absl::ZeroDuration());
  EXPECT_EQ(Use(gate, away_), away_);
  EXPECT_TRUE(
      absl::IsResourceExhausted(gate.Run([]() -> absl::Status { throw std::bad_alloc(); })));
  EXPECT_EQ(Use(gate, absl::OkStatus()), absl::OkStatus());
}

}  // namespace
}  // namespace inlay::serve
