#include "ops/team.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cfenv>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/wait_until.h"

#ifdef __linux__
#include <sys/resource.h>
#endif

namespace inlay {
namespace {

TEST(Team, CoversEveryUnitOnceInWholeChunks) {
  for (size_t threads : {1, 2, 3, 5, 8}) {
    Team team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (size_t chunk : {1, 3, 16}) {
      for (size_t units = 0; units < 70; ++units) {
        std::mutex mutex;
        std::vector<std::pair<size_t, size_t>> parts;
        team.Run(units, chunk, [&](const Share& share) {
          std::lock_guard<std::mutex> lock(mutex);
          ASSERT_LT(share.thread, threads);
          parts.emplace_back(share.begin, share.end);
        });
        std::sort(parts.begin(), parts.end());
        size_t next = 0;
        for (const auto& [begin, end] : parts) {
          ASSERT_EQ(begin, next);
          ASSERT_LT(begin, end);
          ASSERT_EQ(begin % chunk, 0u);
          ASSERT_TRUE(parts.size() == 1 || end - begin == chunk || end == units);
          next = end;
        }
        ASSERT_EQ(next, units);
      }
    }
  }
}

TEST(Team, OneThreadRunsOnTheCaller) {
  Team team(1);
  std::thread::id id;
  team.Run(10, 1, [&](const Share&) { id = std::this_thread::get_id(); });
  EXPECT_EQ(id, std::this_thread::get_id());
}

// Scratch memory that is kept by a thread's number would be overwritten.
TEST(Team, NoTwoThreadsHaveOneNumberAtATime) {
  Team team(4);
  std::vector<std::atomic<bool>> busy(4);
  for (int round = 0; round < 300; ++round) {
    team.Run(64, 1, [&](const Share& share) {
      ASSERT_FALSE(busy[share.thread].exchange(true));
      std::this_thread::yield();
      busy[share.thread] = false;
    });
  }
}

TEST(Team, WhatAnyThreadThrowsComesToTheCaller) {
  for (size_t threads : {1, 2, 4}) {
    Team team(threads);
    for (size_t bad = 0; bad < 4; ++bad) {
      std::atomic<size_t> finished = 0;
      const auto work = [&](const Share& share) {
        if (share.begin <= bad && bad < share.end) throw std::bad_alloc();
        finished += share.end - share.begin;
      };
      EXPECT_THROW(team.Run(4, 1, work), std::bad_alloc);
      if (threads > 1) {
        EXPECT_EQ(finished, 3u);
      }
      EXPECT_THROW(team.Run(4, 1, [](const Share&) { throw std::bad_alloc(); }), std::bad_alloc);
      finished = 0;
      team.Run(4, 1, [&](const Share& share) { finished += share.end - share.begin; });
      EXPECT_EQ(finished, 4u);
    }
  }
}

TEST(Team, WritesOfOnePhaseAreSeenByTheNext) {
  for (size_t threads : {2, 3, 8}) {
    Team team(threads);
    std::vector<int> values(1000, 0), shifted(1000, 0);
    for (int round = 1; round <= 200; ++round) {
      // Each phase reads what other threads wrote in the one before, and none what it writes.
      team.Run(values.size(), 5, [&](const Share& share) {
        for (size_t i = share.begin; i < share.end; ++i) shifted[i] = values[(i + 500) % 1000] + 1;
      });
      team.Run(values.size(), 7, [&](const Share& share) {
        for (size_t i = share.begin; i < share.end; ++i) values[i] = shifted[(i + 300) % 1000];
      });
    }
    for (int value : values) ASSERT_EQ(value, 200);
  }
}

// Of one chunk, while it stalls; others are taken by whoever is there.
TEST(Team, AStalledThreadKeepsNoMoreThanItsChunk) {
  Team team(3);
  std::atomic<bool> stalled = false;
  std::atomic<size_t> done = 0, done_at_the_end_of_the_stall = 0;
  team.Run(300, 1, [&](const Share& share) {
    // The first other thread that comes waits until all other chunks are done.
    if (share.thread != 0 && !stalled.exchange(true)) {
      while (done != 299) std::this_thread::yield();
      done_at_the_end_of_the_stall = done.load();
    } else if (!stalled) {
      // The caller alone must not be done before another thread has come.
      while (!stalled && share.begin == 99) std::this_thread::yield();
    }
    done += share.end - share.begin;
  });
  EXPECT_EQ(done, 300u);
  EXPECT_EQ(done_at_the_end_of_the_stall, 299u);
}

// Runs short phases until no thread rests.
void AwaitAll(Team& team, size_t threads) {
  EXPECT_TRUE(WaitUntil([&] {
    if (team.active() >= threads) return true;
    std::atomic<size_t> sum = 0;
    team.Run(10, 1, [&](const Share& share) { sum += share.end - share.begin; });
    EXPECT_EQ(sum, 10u);
    return false;
  }));
}

// Makes the other thread of two late by so much.
void RunWithOneLate(Team& team, std::chrono::milliseconds late, bool preempted = true) {
  AwaitAll(team, 2);  // one that rests would never come while the caller waits for it below
  std::atomic<bool> came = false;
  team.Set({.before_chunk =
                [&](size_t thread) {
                  if (thread != 0 && !came.exchange(true)) std::this_thread::sleep_for(late);
                },
            .preempted = preempted});
  team.Run(100, 1, [&](const Share& share) {
    while (share.begin == 10 && !came) std::this_thread::yield();
  });
  team.Set({});
}

TEST(Team, AThreadThatIsLateRestsForAWhileAndComesBack) {
  Team team(2);
  // It rests for some milliseconds the first time and longer each time after. Where this thread
  // itself is held up for as long, the other is back already and there is nothing to see.
  EXPECT_TRUE(WaitUntil([&] {
    RunWithOneLate(team, std::chrono::milliseconds(40));
    return team.active() == 1;
  }));
  AwaitAll(team, 2);
  EXPECT_EQ(team.active(), 2u);
}

TEST(Team, ShortLossesNowAndThenAreForgiven) {
  Team team(2);
  // On a busy machine the losses may really be larger, but not each time.
  EXPECT_TRUE(WaitUntil([&] {
    // Together they would be too much, and one of them is more than the first rest.
    for (int i = 0; i < 6; ++i) {
      RunWithOneLate(team, std::chrono::milliseconds(6));
      if (team.active() == 1) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    return true;
  }));
}

#ifdef __linux__
// More threads than processors that are never idle, while it exists.
class BusyThreads {
 public:
  BusyThreads() {
    for (size_t i = 0; i < 2 * std::thread::hardware_concurrency() + 2; ++i) {
      threads_.emplace_back([this] {
        while (!stop_.load(std::memory_order_relaxed)) {
        }
      });
    }
  }
  ~BusyThreads() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

long Preemptions() {
  rusage usage;
  getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nivcsw;
}

TEST(Team, AThreadThatLosesItsProcessorRests) {
  Team team(2);
  const BusyThreads others;
  EXPECT_TRUE(WaitUntil([&] {
    std::atomic<bool> came = false;
    team.Set({.before_chunk = [&](size_t thread) {
      if (thread == 0 || came.exchange(true)) return;
      const long before = Preemptions();
      while (Preemptions() < before + 3) {
      }
    }});
    // No region: the caller's own losses do not count.
    team.Run(100, 1, [&](const Share& share) {
      while (share.begin == 10 && !came) std::this_thread::yield();
    });
    team.Set({});
    return team.active() == 1;
  }));
}

TEST(Team, AThreadThatIsLateForAnotherReasonThanItsProcessorKeepsItsPlace) {
  Team team(2);
  // On a busy machine a thread may really lose its processor meanwhile, but not each time.
  EXPECT_TRUE(WaitUntil([&] {
    RunWithOneLate(team, std::chrono::milliseconds(40), false);
    return team.active() == 2;
  }));
}
#endif

TEST(Team, AThreadComesBackInTheMiddleOfALongPhase) {
  Team team(2);
  ASSERT_TRUE(WaitUntil([&] {
    RunWithOneLate(team, std::chrono::milliseconds(40));
    return team.active() == 1;
  }));
  std::atomic<bool> came = false;
  team.Run(1'000'000, 1, [&](const Share& share) {
    if (share.thread != 0) came = true;
    if (!came) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
  EXPECT_TRUE(came);
}

TEST(Team, RegionsOfSeveralCallersTakeTurns) {
  Team team(2);
  std::atomic<int> inside = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 4; ++i) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Team::Region region(team);
        EXPECT_EQ(inside.fetch_add(1), 0);
        size_t sum = 0;
        std::mutex mutex;
        team.Run(20, 1, [&](const Share& share) {
          std::lock_guard<std::mutex> lock(mutex);
          sum += share.end - share.begin;
        });
        EXPECT_EQ(sum, 20u);
        inside.fetch_sub(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

// A subnormal number that is computed, not folded, and a quotient that rounds.
float Subnormal() {
  volatile float small = 1e-38f, tenth = 0.1f;
  return small * tenth;
}
float Third() {
  volatile float one = 1.0f, three = 3.0f;
  return one / three;
}

#if defined(__x86_64__)
constexpr uint32_t kFlushAndDaz = 0x8040;
uint32_t ControlWord() { return __builtin_ia32_stmxcsr(); }
void SetControlWord(uint32_t word) { __builtin_ia32_ldmxcsr(word); }
#endif

TEST(Team, RegionsComputeInTheDefaultFloatEnvironmentAndRestoreTheCallers) {
  const float third = Third();
  std::fesetround(FE_DOWNWARD);
#if defined(__x86_64__)
  SetControlWord(ControlWord() | kFlushAndDaz);
  ASSERT_EQ(Subnormal(), 0.0f);
#endif
  ASSERT_NE(Third(), third);
  {
    Team team(3);  // its threads start with the caller's settings
    const Team::Region region(team);
    std::atomic<int> wrong = 0, arrived = 0;
    // Each thread has a chunk, and keeps it until all have one.
    team.Run(3, 1, [&](const Share&) {
      ++arrived;
      while (arrived < 3) std::this_thread::yield();
      if (Third() != third || Subnormal() == 0.0f) ++wrong;
    });
    EXPECT_EQ(wrong, 0);
  }
  EXPECT_NE(Third(), third);
  EXPECT_EQ(std::fegetround(), FE_DOWNWARD);
  std::fesetround(FE_TONEAREST);
#if defined(__x86_64__)
  EXPECT_EQ(Subnormal(), 0.0f);
  SetControlWord(ControlWord() & ~kFlushAndDaz);
#endif
  EXPECT_EQ(Third(), third);
}

// What a thread fetches is that of its own part.
TEST(Team, AsksForWhatIsAheadOfEachPart) {
  class Ahead final : public PhaseAhead {
   public:
    MemoryAhead Head(size_t part, size_t parts) const override {
      EXPECT_LT(part, parts);
      EXPECT_LE(parts, 3u);
      ++asked;
      return {memory.data() + part * 1000, 1000};
    }
    std::vector<char> memory = std::vector<char>(3000);
    mutable std::atomic<int> asked = 0;
  } ahead;
  Team team(3);
  for (int round = 0; round < 100; ++round) {
    const int before = ahead.asked;
    team.Run(
        30, 1, [](const Share&) {}, &ahead);
    EXPECT_GE(ahead.asked, before + 1);
    EXPECT_LE(ahead.asked, before + 3);
  }
}

// They are for the program's own threads. Faults and profilers need the thread that they are about.
TEST(Team, ItsThreadsBlockSignals) {
  sigset_t before, after, mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  Team team(2);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  std::atomic<bool> seen = false;
  team.Run(2, 1, [&](const Share& share) {
    // The caller waits in its chunk, and so leaves the other to the other thread.
    while (share.thread == 0 && !seen) std::this_thread::yield();
    if (share.thread == 0) return;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    seen = true;
  });
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD, SIGALRM, SIGPIPE})
    EXPECT_EQ(sigismember(&mask, signal), 1) << signal;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPROF})
    EXPECT_EQ(sigismember(&mask, signal), 0) << signal;
  for (int signal = 1; signal < NSIG; ++signal)
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
}

// Whatever the other threads of its parent were doing.
TEST(Team, AForkedProcessComputesAlone) {
  for (const size_t threads : {1, 3}) {
    auto team = std::make_unique<Team>(threads);
    std::atomic<bool> inside = false, leave = false;
    std::thread other([&] {
      const Team::Region region(*team);
      inside = true;
      while (!leave) std::this_thread::yield();
    });
    while (!inside) std::this_thread::yield();
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // ends it where it hangs
      size_t units = 0;
      {
        const Team::Region region(*team);
        team->Run(1000, 1, [&](const Share& share) {
          if (share.thread != 0) _exit(1);
          units += share.end - share.begin;
        });
      }
      team.reset();
      _exit(units == 1000 ? 0 : 2);
    }
    leave = true;
    other.join();
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    // The parent's team is as it was.
    const Team::Region region(*team);
    std::atomic<size_t> units = 0;
    team->Run(1000, 1, [&](const Share& share) { units += share.end - share.begin; });
    EXPECT_EQ(units, 1000u);
  }
}

}  // namespace
}  // namespace inlay
