#include "ops/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <exception>
#include <thread>
#include <utility>
#include <vector>

#include "hwy/cache_control.h"

namespace inlay {
namespace {

// How long a thread that waits stays awake. The ops of a decode step follow each other within a few
// microseconds, while waking a sleeping thread takes tens of them; on a busy machine a longer wait
// would take the time of others.
constexpr std::chrono::microseconds kAwake(50);

// Whether done() became true while this thread stayed awake.
template <class Done>
bool WaitAwake(const Done& done) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  do {
    for (int i = 0; i < 32; ++i) {
      if (done()) return true;
      hwy::Pause();
    }
  } while (Clock::now() - start < kAwake);
  return done();
}

}  // namespace

// Each Run is a round: the caller publishes the work and raises the round's number, every worker
// does its part and lowers the count of those that have not finished. Highway's pool either always
// sleeps or always spins: the former cost a fifth of the decode speed of a small model, the latter
// all of it when another program wanted the cores.
struct ThreadPool::Impl {
  Impl() = default;
  // The other constructor has made a whole object: where the system refuses a thread and this one
  // throws, the destructor ends those that run.
  explicit Impl(size_t threads) : Impl() {
    for (size_t i = 1; i < threads; ++i) {
      workers.emplace_back([this, i] { Work(i); });
    }
  }

  ~Impl() {
    stop = true;
    StartRound();
    for (std::thread& worker : workers) worker.join();
  }

  void Run(size_t parts, const std::function<void(size_t)>& part) {
    work = &part;
    count = parts;
    unfinished.store(workers.size(), std::memory_order_relaxed);
    StartRound();
    Do(0);
    const auto done = [this] { return unfinished.load(std::memory_order_acquire) == 0; };
    if (!WaitAwake(done)) {
      for (size_t left; (left = unfinished.load(std::memory_order_acquire)) != 0;)
        unfinished.wait(left);
    }
    if (!failed) return;
    failed = false;
    std::rethrow_exception(std::exchange(error, nullptr));
  }

  // Memory may run out in any thread: the caller hears of it when all have finished.
  void Do(size_t index) {
    try {
      (*work)(index);
    } catch (...) {
      if (!failed.exchange(true)) error = std::current_exception();
    }
  }

  // Sequentially consistent, as the worker's counterpart: either this thread sees the sleeper, or
  // the worker sees the new round and does not go to sleep.
  void StartRound() {
    round.fetch_add(1);
    if (sleepers.load() > 0) round.notify_all();
  }

  void Work(size_t index) {
    for (uint32_t seen = 0;; ++seen) {
      if (!WaitAwake([&] { return round.load(std::memory_order_acquire) != seen; })) {
        sleepers.fetch_add(1);
        while (round.load() == seen) round.wait(seen);
        sleepers.fetch_sub(1);
      }
      if (stop) return;
      if (index < count) Do(index);
      if (unfinished.fetch_sub(1, std::memory_order_acq_rel) == 1) unfinished.notify_one();
    }
  }

  std::atomic<uint32_t> round{0};
  std::atomic<size_t> unfinished{0};  // workers, in this round
  std::atomic<size_t> sleepers{0};
  // Written before a round starts, read during it.
  const std::function<void(size_t)>* work = nullptr;
  size_t count = 0;
  bool stop = false;
  // Of the first that threw in this round.
  std::atomic<bool> failed{false};
  std::exception_ptr error;
  std::vector<std::thread> workers;
};

ThreadPool::ThreadPool(size_t threads) {
  assert(threads >= 1);
  if (threads > 1) impl_ = std::make_unique<Impl>(threads);
}

ThreadPool::~ThreadPool() = default;

size_t ThreadPool::threads() const { return impl_ ? impl_->workers.size() + 1 : 1; }

void ThreadPool::Run(size_t count, size_t grain,
                     const std::function<void(size_t begin, size_t end)>& work) {
  assert(grain >= 1);
  if (count == 0) return;
  const size_t units = (count + grain - 1) / grain;
  const size_t ranges = std::min(threads(), units);
  if (ranges == 1) {
    work(0, count);
    return;
  }
  const auto part = [&](size_t range) {
    const size_t begin = range * units / ranges * grain;
    const size_t end = std::min((range + 1) * units / ranges * grain, count);
    work(begin, end);
  };
  impl_->Run(ranges, std::cref(part));
}

}  // namespace inlay
