// Threads for work that would keep the network's threads from others: parsing, rendering, encoding.
#ifndef INLAY_SERVE_SERVICE_WORKERS_H_
#define INLAY_SERVE_SERVICE_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/wait_for.h"

namespace inlay::serve {

// Does what it is given on a fixed number of threads, in the order in which it came. Safe to use
// from several threads.
class Workers {
 public:
  // Throws where the system refuses a thread.
  explicit Workers(size_t threads) {
    try {
      for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
    } catch (...) {
      Stop();
      throw;
    }
  }
  // Drops what has not begun.
  ~Workers() { Stop(); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `work` on one of the threads. What it throws ends it alone: a reply that it keeps is
  // dropped.
  void Add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    due_.notify_one();
  }

  // Waits until all that was added is done, or for `most`.
  void Finish(absl::Duration most) {
    std::unique_lock lock(mutex_);
    WaitFor(done_, lock, most, [this] { return waiting_.empty() && running_ == 0; });
  }

 private:
  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    due_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  void Run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        due_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
        if (stop_) return;
        work = std::move(waiting_.front());
        waiting_.pop_front();
        ++running_;
      }
      try {
        work();
      } catch (const std::exception&) {  // see Add
      }
      work = nullptr;  // what it keeps is gone, too, once it is done
      const std::lock_guard lock(mutex_);
      --running_;
      if (waiting_.empty() && running_ == 0) done_.notify_all();
    }
  }

  std::mutex mutex_;              // guards waiting_, running_ and stop_
  std::condition_variable due_;   // something waits, or stop_
  std::condition_variable done_;  // nothing waits, and nothing runs
  std::deque<std::function<void()>> waiting_;
  size_t running_ = 0;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: they use all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_WORKERS_H_
