#include "serve/scheduler/memory_budget.h"

#include <gtest/gtest.h>

namespace inlay::serve {
namespace {

constexpr CacheBytes kPlan{
    .constant = 1000, .per_block = 100, .ring_block = 50, .append = 30, .snapshot = 7};

TEST(MemoryBudgetTest, CountsAllThatAConversationNeeds) {
  const MemoryBudget memory(10'000, kPlan, 3);
  EXPECT_EQ(memory.BytesFor(1, 1), 1000u + 100 + 30 + 7 + 3);
  EXPECT_EQ(memory.BytesFor(kKvBlockRows + 1, 5), 1000u + 200 + 30 + 7 + 15);
}

// Of rings an append takes what it writes to, however much of the constant part there is already.
TEST(MemoryBudgetTest, BytesToAppend) {
  const MemoryBudget memory(10'000, kPlan, 3);
  EXPECT_EQ(memory.BytesToAppend(1), 30u + 7 + 2 * (100 + 50));
  EXPECT_EQ(memory.BytesToAppend(2 * kKvBlockRows), 30u + 7 + 3 * (100 + 50));
}

TEST(MemoryBudgetTest, NeverPromisesMoreThanThereIs) {
  MemoryBudget memory(1000, kPlan, 0);
  EXPECT_TRUE(memory.Reserve(600));
  EXPECT_FALSE(memory.Reserve(401));
  EXPECT_EQ(memory.reserved(), 600u);
  EXPECT_TRUE(memory.Reserve(400));
  memory.Release(600);
  EXPECT_EQ(memory.reserved(), 400u);
  EXPECT_TRUE(memory.Reserve(600));
}

TEST(MemoryBudgetTest, LongestAlone) {
  EXPECT_EQ(MemoryBudget(1137 - 1, kPlan, 0).LongestAlone(99, 1), 0u);
  EXPECT_EQ(MemoryBudget(1137, kPlan, 0).LongestAlone(4096, 1), kKvBlockRows);
  EXPECT_EQ(MemoryBudget(1337, kPlan, 0).LongestAlone(4096, 1), 3 * kKvBlockRows);
  EXPECT_EQ(MemoryBudget(1337, kPlan, 50).LongestAlone(4096, 4), kKvBlockRows);
  EXPECT_EQ(MemoryBudget(1337, kPlan, 0).LongestAlone(5, 1), 5u);
}

TEST(MemoryBudgetTest, MostRowsAlone) {
  const MemoryBudget memory(1137 + 35, kPlan, 5);
  EXPECT_EQ(memory.MostRowsAlone(kKvBlockRows, 32), 7u);
  EXPECT_EQ(memory.MostRowsAlone(kKvBlockRows, 3), 3u);
  EXPECT_EQ(memory.MostRowsAlone(kKvBlockRows + 1, 32), 0u);
}

}  // namespace
}  // namespace inlay::serve
