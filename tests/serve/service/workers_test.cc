#include "serve/service/workers.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <new>
#include <stdexcept>

#include "absl/time/time.h"

namespace inlay::serve {
namespace {

TEST(WorkersTest, FinishWaitsForAllThatWasAdded) {
  std::promise<void> may_go_on;
  std::atomic<int> done = 0;
  Workers workers(1);
  workers.Add([&] {
    may_go_on.get_future().wait();
    ++done;
  });
  workers.Add([&] { ++done; });
  workers.Finish(absl::Milliseconds(5));
  EXPECT_EQ(done, 0) << "for no longer than it may";
  may_go_on.set_value();
  workers.Finish(absl::InfiniteDuration());
  EXPECT_EQ(done, 2);
  workers.Finish(absl::InfiniteDuration());  // with nothing to wait for
}

TEST(WorkersTest, WhatThrowsEndsAlone) {
  const auto kept = std::make_shared<int>(1);
  std::atomic<int> done = 0;
  Workers workers(1);
  workers.Add([kept] { throw std::bad_alloc(); });
  workers.Add([] { throw std::out_of_range("a place"); });
  workers.Add([&] { ++done; });
  workers.Finish(absl::InfiniteDuration());
  EXPECT_EQ(done, 1);
  EXPECT_EQ(kept.use_count(), 1) << "what it has kept";
}

}  // namespace
}  // namespace inlay::serve
