// The thread that waits for the store of snapshots, so that no other has to.
#ifndef INLAY_SERVE_PREFIXES_STORE_THREAD_H_
#define INLAY_SERVE_PREFIXES_STORE_THREAD_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "io/store/snapshot_store.h"
#include "serve/prefixes/store_line.h"

namespace inlay::serve {

// Does one job after the other, and connects in between where that is needed. Safe to use from
// several threads.
class StoreThread {
 public:
  struct Job {
    // Uses the store; after an error the thread connects anew before the next job.
    std::function<absl::Status(SnapshotStore& store)> run;
    // Called once in any case: after `run`, or without it where the store is not reached. It must
    // not throw.
    std::function<void()> end;
  };

  // See StoreLine. `lost` is called (on this thread) where the store may have lost what was in it.
  StoreThread(std::unique_ptr<SnapshotStore> store, StoreUse use, absl::Duration rest,
              OutageNotes& notes, std::function<void()> lost = nullptr);
  // Ends all jobs.
  ~StoreThread();

  // Queues a job. False, without a call of `end`, while there is no connection or when too many
  // wait.
  bool Add(Job job);

  // Whether Add would take a job.
  bool ready() const;
  // Jobs that have not ended.
  size_t waiting() const;
  // Waits until there are none, or for `most`.
  void Finish(absl::Duration most);

 private:
  static constexpr size_t kMostJobs = 256;

  void Run();
  // Waits for the next job; none once the thread is to end.
  bool Next(Job& job);
  // False once the thread is to end.
  bool Reconnect();
  void EndAll();

  StoreLine line_;
  const std::function<void()> lost_;
  mutable std::mutex mutex_;  // guards the members below, but for the thread
  std::condition_variable changed_;
  std::condition_variable ended_;  // a job has
  std::deque<Job> jobs_;
  bool running_ = false;  // a job that is no longer among these
  bool connected_ = false;
  bool stop_ = false;
  std::thread thread_;  // last: it uses all others
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_PREFIXES_STORE_THREAD_H_
