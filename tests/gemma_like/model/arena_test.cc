#include "gemma_like/model/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include "tests/failing_memory.h"

namespace inlay {
namespace {

using failing_memory::Fault;

constexpr size_t kUnit = Arena::kAlignment / sizeof(float);  // floats of an alignment unit

bool IsAligned(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) % Arena::kAlignment == 0;
}

// Where the next rows would begin. Rows of no floats take nothing.
const float* Next(Arena& arena) { return arena.Rows(0, 1).data; }

TEST(ArenaTest, RowsAreWholeUnits) {
  EXPECT_EQ(Arena::Floats(0, 5), 0u);
  EXPECT_EQ(Arena::Floats(5, 0), 0u);
  EXPECT_EQ(Arena::Floats(1, 1), kUnit);
  EXPECT_EQ(Arena::Floats(1, kUnit), kUnit);
  EXPECT_EQ(Arena::Floats(1, kUnit + 1), 2 * kUnit);
  // Rows lie without gaps; only what follows the last one is filled up.
  EXPECT_EQ(Arena::Floats(kUnit, 3), 3 * kUnit);
  EXPECT_EQ(Arena::Floats(kUnit + 1, 3), 4 * kUnit);
}

TEST(ArenaTest, FloatsIsWhatRowsTakes) {
  Arena arena(10'000);
  for (size_t rows : {0, 1, 2, 5, 16}) {
    for (size_t cols : {0, 1, 7, 15, 16, 17, 33}) {
      const Arena::Scope scope(arena);
      const float* const before = Next(arena);
      const FloatRows taken = arena.Rows(rows, cols);
      EXPECT_EQ(taken.data, before);
      EXPECT_EQ(taken.rows, rows);
      EXPECT_EQ(taken.cols, cols);
      EXPECT_EQ(taken.stride, cols);
      EXPECT_EQ(Next(arena) - before, static_cast<ptrdiff_t>(Arena::Floats(rows, cols)));
    }
  }
}

TEST(ArenaTest, MemoryAndIntsTakeAsMuchAsOneRow) {
  Arena arena(10'000);
  for (size_t count : {1, 15, 16, 17, 100}) {
    const float* const begin = Next(arena);
    EXPECT_EQ(arena.Memory(count), begin);
    EXPECT_EQ(Next(arena) - begin, static_cast<ptrdiff_t>(Arena::Floats(1, count)));
    const float* const middle = Next(arena);
    EXPECT_EQ(static_cast<const void*>(arena.Ints(count)), middle);
    EXPECT_EQ(Next(arena) - middle, static_cast<ptrdiff_t>(Arena::Floats(1, count)));
  }
}

TEST(ArenaTest, WhatIsHandedOutIsAlignedAndApart) {
  Arena arena(Arena::Floats(3, 5) + Arena::Floats(1, 1) + Arena::Floats(1, 17) +
              Arena::Floats(2, 16));
  const FloatRows first = arena.Rows(3, 5);
  int32_t* const ints = arena.Ints(1);
  float* const memory = arena.Memory(17);
  const FloatRows last = arena.Rows(2, 16);
  for (const void* each : {static_cast<const void*>(first.data), static_cast<const void*>(ints),
                           static_cast<const void*>(memory), static_cast<const void*>(last.data)})
    EXPECT_TRUE(IsAligned(each));
  // Each is written to its end, and none of that shows in another. This fills the whole capacity,
  // so AddressSanitizer sees one float too few.
  std::fill_n(first.data, 3 * 5, 1.f);
  ints[0] = 2;
  std::fill_n(memory, 17, 3.f);
  std::fill_n(last.data, 2 * 16, 4.f);
  EXPECT_EQ(std::count(first.data, first.data + 3 * 5, 1.f), 3 * 5);
  EXPECT_EQ(ints[0], 2);
  EXPECT_EQ(std::count(memory, memory + 17, 3.f), 17);
  EXPECT_EQ(std::count(last.data, last.data + 2 * 16, 4.f), 2 * 16);
}

TEST(ArenaTest, EveryArenaIsAligned) {
  // Several at once and of odd sizes, so that none is aligned by chance.
  std::vector<std::unique_ptr<Arena>> arenas;
  for (size_t i = 0; i < 20; ++i) {
    arenas.push_back(std::make_unique<Arena>(kUnit * (1 + i) + i));
    EXPECT_TRUE(IsAligned(arenas.back()->Memory(1)));
  }
}

TEST(ArenaTest, ScopesNestAndGiveBackWhatWasTakenSinceTheyBegan) {
  Arena arena(1000);
  arena.Rows(1, 10);
  const float* const outside = Next(arena);
  {
    const Arena::Scope outer(arena);
    float* const kept = arena.Memory(20);
    *kept = 7;
    const float* const after_kept = Next(arena);
    for (int round = 0; round < 3; ++round) {
      const Arena::Scope inner(arena);
      EXPECT_EQ(arena.Memory(100), after_kept) << "the same memory in each round";
      {
        const Arena::Scope innermost(arena);
        arena.Ints(50);
      }
      EXPECT_EQ(Next(arena) - after_kept, static_cast<ptrdiff_t>(Arena::Floats(1, 100)));
    }
    EXPECT_EQ(Next(arena), after_kept);
    EXPECT_EQ(*kept, 7) << "of the outer scope, which has not ended";
  }
  EXPECT_EQ(Next(arena), outside);
}

// As Model does, which ends the scope of what layers share before the block does.
TEST(ArenaTest, AScopeMayEndBeforeItsBlock) {
  Arena arena(1000);
  std::optional<Arena::Scope> scope(arena);
  const float* const begin = arena.Memory(10);
  scope.reset();
  EXPECT_EQ(Next(arena), begin);
}

TEST(ArenaTest, AllocatesOnceAndGivesItBack) {
  const size_t held = failing_memory::held;
  {
    failing_memory::FailAfter(1, Fault::kFromThenOn);
    Arena arena(1000);
    for (int i = 0; i < 100; ++i) {
      const Arena::Scope scope(arena);
      arena.Rows(10, 10);
      arena.Ints(100);
    }
    failing_memory::Stop();
    EXPECT_FALSE(failing_memory::has_failed);
    EXPECT_GE(failing_memory::held - held, 1000 * sizeof(float));
    EXPECT_LT(failing_memory::held - held, 1000 * sizeof(float) + 4096) << "a page for malloc";
  }
  EXPECT_EQ(failing_memory::held, held);
}

TEST(ArenaTest, WithoutMemoryThereIsNoArena) {
  const size_t held = failing_memory::held;
  failing_memory::FailAfter(0, Fault::kOnce);
  EXPECT_THROW(Arena(1000), std::bad_alloc);
  failing_memory::Stop();
  EXPECT_EQ(failing_memory::held, held);
}

TEST(ArenaTest, TheWholeCapacityCanBeTakenAgainAndAgain) {
  Arena arena(3 * kUnit);
  for (int round = 0; round < 3; ++round) {
    const Arena::Scope scope(arena);
    arena.Rows(1, kUnit);
    arena.Rows(2, kUnit);
  }
  arena.Rows(3, kUnit);
}

TEST(ArenaDeathTest, OneFloatMoreThanTheCapacityIsAProgrammerError) {
#ifdef NDEBUG
  GTEST_SKIP() << "assertions are off";
#else
  Arena arena(2 * kUnit);
  arena.Memory(kUnit);
  EXPECT_DEATH(arena.Memory(kUnit + 1), "used_ <= capacity_");
  EXPECT_DEATH(arena.Rows(2, kUnit), "used_ <= capacity_");
  // A capacity that is not a whole number of units has no room for the filling.
  Arena odd(kUnit + 1);
  EXPECT_DEATH(odd.Memory(kUnit + 1), "used_ <= capacity_");
#endif
}

}  // namespace
}  // namespace inlay
