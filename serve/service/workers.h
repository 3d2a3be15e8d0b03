// Threads for work that would keep the network's threads from others: parsing, rendering, encoding.
#ifndef INLAY_SERVE_SERVICE_WORKERS_H_
#define INLAY_SERVE_SERVICE_WORKERS_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace inlay::serve {

class Workers {
 public:
  explicit Workers(size_t threads) {
    for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
  }
  // Drops what has not begun.
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    due_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // Runs `work`, which must not throw, on one of the threads.
  void Add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(work));
    due_.notify_one();
  }

 private:
  void Run() {
    while (true) {
      std::function<void()> work;
      {
        std::unique_lock lock(mutex_);
        due_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
        if (stop_) return;
        work = std::move(waiting_.front());
        waiting_.pop_front();
      }
      work();
    }
  }

  std::mutex mutex_;             // guards waiting_ and stop_
  std::condition_variable due_;  // something waits, or stop_
  std::deque<std::function<void()>> waiting_;
  bool stop_ = false;
  std::vector<std::thread> threads_;  // last: they use all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_WORKERS_H_
