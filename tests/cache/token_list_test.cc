#include "cache/token_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <new>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "tests/failing_memory.h"

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

static_assert(std::is_nothrow_move_constructible_v<TokenList>);

Tokens Of(const TokenList& list) { return Tokens(list.view().begin(), list.view().end()); }

// Stands for a list's memory: lists that share theirs have the same.
const int32_t* Memory(const TokenList& list) { return list.view().data(); }

TEST(TokenListTest, AnEmptyListTakesTokens) {
  TokenList list;
  EXPECT_EQ(list.size(), 0u);
  EXPECT_TRUE(list.view().empty());
  list.Truncate(0);
  list.Append({});
  EXPECT_EQ(list.size(), 0u);
  list.Append({1, 2});
  list.Append({3});
  EXPECT_EQ(Of(list), (Tokens{1, 2, 3}));
  EXPECT_EQ(list.size(), 3u);
  list.Truncate(0);
  EXPECT_TRUE(list.view().empty());
}

TEST(TokenListTest, CopiesShareMemoryUntilOneAppends) {
  const TokenList origin(Tokens{1, 2, 3});
  TokenList copy = origin;
  EXPECT_EQ(Memory(copy), Memory(origin));
  copy.Append({4});
  EXPECT_NE(Memory(copy), Memory(origin));
  EXPECT_EQ(Of(copy), (Tokens{1, 2, 3, 4}));
  EXPECT_EQ(Of(origin), (Tokens{1, 2, 3}));
}

TEST(TokenListTest, CopiesShareMemoryUntilOneIsTruncated) {
  TokenList origin(Tokens{1, 2, 3});
  TokenList copy = origin;
  // Nothing is dropped, so there is nothing to copy.
  copy.Truncate(3);
  copy.Truncate(100);
  EXPECT_EQ(Memory(copy), Memory(origin));
  EXPECT_EQ(copy.size(), 3u);
  copy.Truncate(1);
  EXPECT_EQ(Of(copy), (Tokens{1}));
  EXPECT_EQ(Of(origin), (Tokens{1, 2, 3}));
  origin.Truncate(2);
  EXPECT_EQ(Of(copy), (Tokens{1}));
  EXPECT_EQ(Of(origin), (Tokens{1, 2}));
}

TEST(TokenListTest, TheLastOwnerChangesTheMemoryWhereItIs) {
  TokenList list(Tokens{1, 2, 3});
  const int32_t* const memory = Memory(list);
  {
    const TokenList copy = list;
    TokenList other = copy;
    other.Append({9});
  }
  list.Truncate(2);
  list.Append({7});  // there is room for it
  EXPECT_EQ(Memory(list), memory);
  EXPECT_EQ(Of(list), (Tokens{1, 2, 7}));
}

TEST(TokenListTest, AppendsTheTokensOfAListThatSharesItsMemory) {
  TokenList list(Tokens{1, 2});
  const TokenList copy = list;
  list.Append(copy.view());
  EXPECT_EQ(Of(list), (Tokens{1, 2, 1, 2}));
  EXPECT_EQ(Of(copy), (Tokens{1, 2}));
}

TEST(TokenListTest, AssignmentSharesAndLetsGoOfWhatWasThere) {
  TokenList list(Tokens{1, 2});
  const TokenList kept = list;
  const TokenList other(Tokens{5});
  list = other;
  EXPECT_EQ(Memory(list), Memory(other));
  EXPECT_EQ(Of(kept), (Tokens{1, 2}));
  list = TokenList();
  EXPECT_EQ(list.size(), 0u);
  EXPECT_EQ(Of(other), (Tokens{5}));
}

TEST(TokenListTest, AssignedToItselfItStaysAsItIs) {
  TokenList list(Tokens{1, 2});
  const int32_t* const memory = Memory(list);
  TokenList& same = list;  // compilers warn of `list = list`
  list = same;
  EXPECT_EQ(Of(list), (Tokens{1, 2}));
  list = std::move(same);
  EXPECT_EQ(Of(list), (Tokens{1, 2}));
  list.Truncate(1);
  EXPECT_EQ(Memory(list), memory) << "it still is the only owner";
}

TEST(TokenListTest, WhatWasMovedFromIsEmptyAndCanBeUsedAgain) {
  TokenList from(Tokens{1, 2});
  const int32_t* const memory = Memory(from);
  TokenList to = std::move(from);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested.
  EXPECT_EQ(from.size(), 0u);
  EXPECT_EQ(Memory(to), memory);
  from.Truncate(0);
  from.Append({3});
  EXPECT_EQ(Of(from), (Tokens{3}));
  EXPECT_EQ(Of(to), (Tokens{1, 2}));
  from = std::move(to);
  EXPECT_EQ(Of(from), (Tokens{1, 2}));
  EXPECT_EQ(to.size(), 0u);
  // NOLINTEND(bugprone-use-after-move)
}

// Lists beside vectors that have no memory in common, and in the end nothing is left of them.
TEST(TokenListTest, RandomProgramsKeepEveryListAndGiveItsMemoryBack) {
  const size_t held = failing_memory::held;
  {
    std::mt19937 random(1);
    std::vector<TokenList> lists(4);
    std::vector<Tokens> expected(4);
    for (int32_t step = 0; step < 20'000; ++step) {
      const size_t i = random() % 4;
      const size_t j = random() % 4;
      switch (random() % 6) {
        case 0:
          lists[i] = lists[j];
          expected[i] = expected[j];
          break;
        case 1: {
          TokenList moved = std::move(lists[i]);
          lists[i] = TokenList();
          lists[j] = std::move(moved);
          const Tokens tokens = std::exchange(expected[i], Tokens());
          expected[j] = tokens;
          break;
        }
        case 2: {
          const size_t size = random() % (expected[i].size() + 1);
          lists[i].Truncate(size);
          expected[i].resize(size);
          break;
        }
        default: {
          const Tokens more(random() % 5, step);
          lists[i].Append(more);
          expected[i].insert(expected[i].end(), more.begin(), more.end());
        }
      }
      for (size_t k = 0; k < 4; ++k) ASSERT_EQ(Of(lists[k]), expected[k]) << step;
    }
  }
  EXPECT_EQ(failing_memory::held, held);
}

// KVCache::Begin counts on it: an append without memory has changed neither this list nor another.
TEST(TokenListTest, WithoutMemoryNothingChanges) {
  for (const bool shared : {false, true}) {
    for (long allocations = 0;; ++allocations) {
      TokenList list(Tokens{1, 2, 3});
      const TokenList copy = shared ? list : TokenList();
      failing_memory::FailAfter(allocations, failing_memory::Fault::kOnce);
      try {
        list.Append({4, 5, 6, 7});
      } catch (const std::bad_alloc&) {
      }
      failing_memory::Stop();
      EXPECT_EQ(copy.size(), shared ? 3u : 0u);
      if (!failing_memory::has_failed) {
        EXPECT_GT(allocations, 0);
        EXPECT_EQ(Of(list), (Tokens{1, 2, 3, 4, 5, 6, 7}));
        break;
      }
      EXPECT_EQ(Of(list), (Tokens{1, 2, 3}));
    }
  }
}

// Two threads change lists that share memory, while the first owner goes. ThreadSanitizer watches.
TEST(TokenListTest, ListsThatShareMemoryAreUsedByTwoThreadsAtOnce) {
  for (int round = 0; round < 200; ++round) {
    std::atomic<int> ready{0};
    std::vector<std::thread> threads;
    {
      const TokenList origin(Tokens(100, -1));
      for (int32_t t = 0; t < 2; ++t) {
        threads.emplace_back([t, &ready, list = origin]() mutable {
          for (++ready; ready < 2;) std::this_thread::yield();
          const TokenList snapshot = list;
          list.Append(Tokens(10, t));
          TokenList shorter = snapshot;
          shorter.Truncate(50);
          Tokens expected(100, -1);
          EXPECT_EQ(Of(snapshot), expected);
          expected.resize(110, t);
          EXPECT_EQ(Of(list), expected);
          EXPECT_EQ(Of(shorter), Tokens(50, -1));
        });
      }
    }
    for (std::thread& thread : threads) thread.join();
  }
}

TEST(TokenListTest, AppendsItsOwnTokens) {
  TokenList list(std::vector<int32_t>{1, 2, 3});
  for (int i = 0; i < 4; ++i) list.Append(list.view());
  ASSERT_EQ(list.size(), 48u);
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(list.view()[i], static_cast<int32_t>(1 + i % 3)) << i;
}

}  // namespace
}  // namespace inlay
