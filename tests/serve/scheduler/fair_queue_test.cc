#include "serve/scheduler/fair_queue.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace inlay::serve {
namespace {

std::string Drain(FairQueue<std::string>& queue) {
  std::string all;
  while (!queue.empty()) all += queue.Pop();
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
  while (!queue.empty()) {
    all += queue.Pop();
    // One token was charged with the turn.
    if (all.back() == 'a') {
      queue.Charge(0, 7, 29);
    } else {
      queue.Charge(0, 8, 9);
    }
  }
  EXPECT_EQ(all, "abbbab");
}

// What is given long after an item's turn counts, too, also where nothing of the owner waits then.
TEST(FairQueueTest, WhatIsGivenLaterCounts) {
  FairQueue<std::string> queue;
  queue.Push(0, 7, 0, "a");
  queue.Push(0, 8, 1, "b");
  queue.Push(0, 8, 2, "b");
  EXPECT_EQ(queue.Pop(), "a");
  EXPECT_EQ(queue.Pop(), "b");
  queue.Charge(0, 7, 5);
  queue.Push(0, 7, 3, "a");
  queue.Push(0, 8, 4, "b");
  EXPECT_EQ(queue.Pop(), "b");
  EXPECT_EQ(queue.Pop(), "b");
  queue.Charge(0, 8, 10);
  EXPECT_EQ(queue.Pop(), "a");
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
  queue.Pop();
  queue.Charge(0, 1, 1000);
  // What was given while nobody waited was taken from nobody.
  queue.Push(0, 1, 1, "a");
  queue.Push(0, 1, 2, "a");
  for (uint64_t i = 3; i < 7; ++i) queue.Push(0, 2, i, "b");
  EXPECT_EQ(Drain(queue), "ababbb");
  // And nobody can be given for long what others were given while they waited.
  for (uint64_t i = 7; i < 10; ++i) queue.Push(0, 1, i, "a");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(queue.Pop(), "a");
    queue.Charge(0, 1, 1000);
  }
  for (uint64_t i = 10; i < 12; ++i) queue.Push(0, 3, i, "c");
  EXPECT_EQ(queue.Pop(), "c");
  queue.Charge(0, 3, 1500);
  EXPECT_EQ(queue.Pop(), "a");
}

// What an owner was given at one priority does not set back who comes new to another.
TEST(FairQueueTest, EachPriorityHasItsOwnClock) {
  FairQueue<std::string> queue;
  uint64_t order = 0;
  for (int i = 0; i < 6; ++i) queue.Push(0, 1, order++, "a");
  for (int i = 0; i < 2; ++i) {
    queue.Push(1, 2, order++, "h");
    EXPECT_EQ(queue.Pop(), "h");
    queue.Charge(1, 2, 1'000'000);
  }
  for (int i = 0; i < 3; ++i) queue.Push(0, 3, order++, "b");
  EXPECT_EQ(Drain(queue), "abababaaa");
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
