#include "ops/thread_pool.h"

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "hwy/contrib/thread_pool/thread_pool.h"

namespace inlay {

struct ThreadPool::Impl {
  explicit Impl(size_t threads) : pool(threads) {}
  hwy::ThreadPool pool;
};

ThreadPool::ThreadPool(size_t threads) {
  assert(threads >= 1);
  if (threads > 1) impl_ = std::make_unique<Impl>(threads);
}

ThreadPool::~ThreadPool() = default;

size_t ThreadPool::threads() const { return impl_ ? impl_->pool.NumWorkers() : 1; }

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
  impl_->pool.Run(0, ranges, [&](uint64_t range, size_t /*thread*/) {
    const size_t begin = range * units / ranges * grain;
    const size_t end = std::min((range + 1) * units / ranges * grain, count);
    work(begin, end);
  });
}

}  // namespace inlay
