#include "serve/prefixes/store_thread.h"

#include <utility>

#include "base/out_of_memory.h"
#include "base/wait_for.h"

namespace inlay::serve {

StoreThread::StoreThread(std::unique_ptr<SnapshotStore> store, StoreUse use, absl::Duration rest,
                         OutageNotes& notes, std::function<void()> lost)
    : line_(std::move(store), use, rest, notes),
      lost_(std::move(lost)),
      thread_([this] { Run(); }) {}

StoreThread::~StoreThread() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

bool StoreThread::Add(Job job) {
  {
    const std::lock_guard lock(mutex_);
    if (!connected_ || stop_ || jobs_.size() >= kMostJobs) return false;
    jobs_.push_back(std::move(job));
  }
  changed_.notify_one();
  return true;
}

bool StoreThread::ready() const {
  const std::lock_guard lock(mutex_);
  return connected_ && jobs_.size() < kMostJobs;
}

size_t StoreThread::waiting() const {
  const std::lock_guard lock(mutex_);
  return jobs_.size() + (running_ ? 1 : 0);
}

void StoreThread::Finish(absl::Duration most) {
  std::unique_lock lock(mutex_);
  WaitFor(ended_, lock, most, [this] { return jobs_.empty() && !running_; });
}

void StoreThread::EndAll() {
  std::deque<Job> jobs;
  {
    const std::lock_guard lock(mutex_);
    connected_ = running_ = false;
    jobs.swap(jobs_);
  }
  ended_.notify_all();
  for (const Job& job : jobs) job.end();
}

bool StoreThread::Reconnect() {
  EndAll();
  if (lost_ != nullptr) lost_();
  {
    std::unique_lock lock(mutex_);
    if (WaitFor(changed_, lock, line_.Rest(), [this] { return stop_; })) return false;
  }
  line_.Connect();
  const std::lock_guard lock(mutex_);
  connected_ = line_.connected();
  return true;
}

bool StoreThread::Next(Job& job) {
  std::unique_lock lock(mutex_);
  running_ = false;
  ended_.notify_all();
  changed_.wait(lock, [this] { return stop_ || !jobs_.empty(); });
  if (stop_) return false;
  job = std::move(jobs_.front());
  jobs_.pop_front();
  running_ = true;
  return true;
}

void StoreThread::Run() {
  while (true) {
    if (!line_.connected()) {
      if (!Reconnect()) break;
      continue;
    }
    Job job;
    if (!Next(job)) break;
    const absl::Status status = OrOutOfMemory("a snapshot", [&] { return job.run(line_.store()); });
    if (status.ok()) {
      line_.Succeeded();
    } else {
      line_.Failed(status);
    }
    job.end();
  }
  EndAll();
}

}  // namespace inlay::serve
