#include "ops/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace inlay {
namespace {

TEST(ThreadPool, CoversEveryIndexOnceInRangesOfWholeGrains) {
  for (size_t threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (size_t grain : {1, 3, 16}) {
      for (size_t count = 0; count < 70; ++count) {
        std::mutex mutex;
        std::vector<std::pair<size_t, size_t>> ranges;
        pool.Run(count, grain, [&](size_t begin, size_t end) {
          std::lock_guard<std::mutex> lock(mutex);
          ranges.emplace_back(begin, end);
        });
        std::sort(ranges.begin(), ranges.end());
        ASSERT_LE(ranges.size(), threads);
        size_t next = 0, shortest = count, longest = 0;
        for (const auto& [begin, end] : ranges) {
          ASSERT_EQ(begin, next);
          ASSERT_LT(begin, end);
          ASSERT_TRUE(end == count || (end - begin) % grain == 0);
          shortest = std::min(shortest, end - begin);
          longest = std::max(longest, end - begin);
          next = end;
        }
        ASSERT_EQ(next, count);
        ASSERT_TRUE(count == 0 || longest - shortest <= grain);
      }
    }
  }
}

TEST(ThreadPool, OneThreadRunsOnTheCaller) {
  ThreadPool pool(1);
  std::thread::id id;
  pool.Run(10, 1, [&](size_t, size_t) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

TEST(ThreadPool, WhatAnyThreadThrowsComesToTheCaller) {
  for (size_t threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (size_t bad = 0; bad < threads; ++bad) {
      std::atomic<size_t> finished = 0;
      const auto work = [&](size_t begin, size_t) {
        if (begin == bad) throw std::bad_alloc();
        ++finished;
      };
      EXPECT_THROW(pool.Run(threads, 1, work), std::bad_alloc);
      EXPECT_EQ(finished, threads - 1);
      const auto all_bad = [](size_t, size_t) { throw std::bad_alloc(); };
      EXPECT_THROW(pool.Run(threads, 1, all_bad), std::bad_alloc);
      finished = 0;
      pool.Run(threads, 1, [&](size_t, size_t) { ++finished; });
      EXPECT_EQ(finished, threads);
    }
  }
}

TEST(ThreadPool, WritesOfOneRunAreSeenByTheNext) {
  ThreadPool pool(3);
  std::vector<int> values(1000, 0), shifted(1000, 0);
  for (int round = 1; round <= 200; ++round) {
    // Each run reads what other threads wrote in the one before, and no run reads what it writes.
    pool.Run(values.size(), 1, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) shifted[i] = values[(i + 500) % 1000] + 1;
    });
    pool.Run(values.size(), 7, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) values[i] = shifted[(i + 300) % 1000];
    });
  }
  for (int value : values) ASSERT_EQ(value, 200);
}

}  // namespace
}  // namespace inlay
