// Threads that run the independent parts of one op.
#ifndef INLAY_OPS_THREAD_POOL_H_
#define INLAY_OPS_THREAD_POOL_H_

#include <cstddef>
#include <functional>
#include <memory>

namespace inlay {

// A fixed set of threads, the caller among them. Ops only ever split work that is independent per
// output, so results do not depend on the number of threads. One Run at a time: a pool belongs to
// one engine, which serialises its calls.
class ThreadPool {
 public:
  // `threads` >= 1; 1 means that everything runs on the calling thread. Throws std::system_error
  // where the system refuses a thread.
  explicit ThreadPool(size_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  size_t threads() const;

  // Splits [0, count) into at most threads() contiguous ranges whose lengths differ by at most
  // `grain`, each range but the last a multiple of `grain` long, and calls work(begin, end) for
  // each of them; returns when all are done. What one of them throws (memory may run out in any
  // thread) is thrown then.
  void Run(size_t count, size_t grain, const std::function<void(size_t begin, size_t end)>& work);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Calls work(begin, end) for ranges of rows that together are [0, rows): for ops that treat each
// row on its own and are cheap per row, so that a few rows are not worth another thread.
template <class Work>
void ForRows(ThreadPool& pool, size_t rows, const Work& work) {
  constexpr size_t kGrain = 8;
  pool.Run(rows, kGrain, std::cref(work));
}

}  // namespace inlay

#endif  // INLAY_OPS_THREAD_POOL_H_
