#include "serve/scheduler/fair_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace inlay::serve {
namespace {

std::string Drain(FairQueue<std::string>& queue, size_t tokens = 1) {
  std::string all;
  while (!queue.empty()) all += queue.Pop(tokens);
  return all;
}

TEST(FairQueueTest, OneOwnersItemsKeepTheirOrder) {
  FairQueue<std::string> queue;
  queue.Push(0, 0, 2, "b");
  queue.Push(0, 0, 1, "a");
  queue.Push(0, 0, 3, "c");
  EXPECT_EQ(queue.size(), 3u);
  EXPECT_EQ(queue.front(), "a");
  EXPECT_EQ(Drain(queue), "abc");
}

TEST(FairQueueTest, OwnersTakeTurns) {
  FairQueue<std::string> queue;
  for (uint64_t i = 0; i < 4; ++i) queue.Push(0, 7, i, "a");
  for (uint64_t i = 4; i < 6; ++i) queue.Push(0, 8, i, "b");
  EXPECT_EQ(Drain(queue), "ababaa");
}

TEST(FairQueueTest, TurnsAreCountedInTokens) {
  FairQueue<std::string> queue;
  for (uint64_t i = 0; i < 2; ++i) queue.Push(0, 7, i, "a");
  for (uint64_t i = 2; i < 6; ++i) queue.Push(0, 8, i, "b");
  std::string all;
  while (!queue.empty()) all += queue.Pop(queue.front() == "a" ? 30 : 10);
  EXPECT_EQ(all, "abbbab");
}

TEST(FairQueueTest, HigherPrioritiesGoFirst) {
  FairQueue<std::string> queue;
  queue.Push(0, 1, 0, "c");
  queue.Push(5, 1, 1, "a");
  queue.Push(5, 2, 2, "b");
  queue.Push(-1, 1, 3, "d");
  EXPECT_EQ(Drain(queue), "abcd");
}

// Who comes after a long absence does not get all turns until it has caught up.
TEST(FairQueueTest, AbsenceSavesNothingUp) {
  FairQueue<std::string> queue;
  queue.Push(0, 1, 0, "a");
  queue.Pop(1000);
  queue.Push(0, 1, 1, "a");
  queue.Pop(1000);
  queue.Push(0, 1, 2, "a");
  queue.Push(0, 1, 3, "a");
  for (uint64_t i = 4; i < 8; ++i) queue.Push(0, 2, i, "b");
  std::string all;
  while (!queue.empty()) all += queue.Pop(1000);
  EXPECT_EQ(all,
            "babab"
            "b");
}

// What an owner was given at one priority does not set back who comes new to another.
TEST(FairQueueTest, EachPriorityHasItsOwnClock) {
  FairQueue<std::string> queue;
  uint64_t order = 0;
  for (int i = 0; i < 6; ++i) queue.Push(0, 1, order++, "a");
  for (int i = 0; i < 2; ++i) {
    queue.Push(1, 2, order++, "h");
    EXPECT_EQ(queue.Pop(1'000'000), "h");
  }
  for (int i = 0; i < 3; ++i) queue.Push(0, 3, order++, "b");
  EXPECT_EQ(Drain(queue, 1000), "abababaaa");
}

TEST(FairQueueTest, RemovesWhatIsGone) {
  FairQueue<std::string> queue;
  queue.Push(0, 1, 0, "a");
  queue.Push(0, 1, 1, "b");
  queue.Push(0, 2, 2, "a");
  std::string gone;
  queue.RemoveIf([](const std::string& item) { return item == "a"; },
                 [&](const std::string& item) { gone += item; });
  EXPECT_EQ(gone, "aa");
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(Drain(queue), "b");
}

}  // namespace
}  // namespace inlay::serve
