// Threads for work that would keep the network's threads from others: parsing, rendering, encoding.
#ifndef INLAY_SERVE_SERVICE_WORKERS_H_
#define INLAY_SERVE_SERVICE_WORKERS_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace inlay::serve {

class Workers {
 public:
  explicit Workers(size_t threads) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  // Drops what has not begun.
  ~Workers() {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `work`, which must not throw, on one of the threads.
  void Add(std::function<void()> work) {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back(std::move(work));
  }

 private:
  void Run() {
    const auto due = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stop_ || !waiting_.empty();
    };
    while (true) {
      std::function<void()> work;
      {
        absl::MutexLock lock(&mutex_);
        mutex_.Await(absl::Condition(&due));
        if (stop_) return;
        work = std::move(waiting_.front());
        waiting_.pop_front();
      }
      work();
    }
  }

  absl::Mutex mutex_;
  std::deque<std::function<void()>> waiting_ ABSL_GUARDED_BY(mutex_);
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;  // last: they use all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_WORKERS_H_
