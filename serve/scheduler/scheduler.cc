#include "serve/scheduler/scheduler.h"

#include <algorithm>
#include <condition_variable>
#include <list>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/wait_for.h"
#include "serve/scheduler/batcher.h"

namespace inlay::serve {
namespace {

// How long the end of a server waits for the prefixes that it leaves to others.
constexpr absl::Duration kTimeToStore = absl::Seconds(10);

class ThreadedScheduler final : public Scheduler {
 public:
  ThreadedScheduler(std::unique_ptr<Batcher> batcher, const SchedulerOptions& options)
      : batcher_(std::move(batcher)),
        options_(options),
        stats_(batcher_->stats()),
        thread_([this] { Run(); }) {}

  ~ThreadedScheduler() override {
    {
      const std::lock_guard lock(mutex_);
      draining_ = true;
      stop_ = true;
      CancelAll();
    }
    work_.notify_one();
    thread_.join();
  }

  absl::StatusOr<uint64_t> Submit(AnswerRequest request,
                                  std::shared_ptr<AnswerListener> listener) override {
    INLAY_RETURN_IF_ERROR(batcher_->Check(request));
    return OrOutOfMemory("this request", [&]() -> absl::StatusOr<uint64_t> {
      auto ticket = std::make_shared<Ticket>();
      ticket->request = std::move(request);
      ticket->listener = std::move(listener);
      ticket->arrived = SteadyNow();
      const std::lock_guard lock(mutex_);
      if (draining_) return absl::UnavailableError("the server is shutting down");
      const size_t waiting = arrived_.size() + fetching_.size() + stats_.waiting;
      // Those for which there are places wait for the next step alone.
      if (waiting >= options_.most_waiting + stats_.free_places) {
        ++refused_;
        return absl::ResourceExhaustedError(
            absl::StrCat("too many requests wait already: ", waiting));
      }
      ForgetEnded();
      ticket->id = ++last_id_;
      tickets_[ticket->id] = ticket;
      Fetch(std::move(ticket));
      return last_id_;
    });
  }

  void Cancel(uint64_t id) override {
    if (const std::shared_ptr<Ticket> ticket = Find(id)) ticket->cancelled = true;
  }

  void Stop(uint64_t id) override {
    if (const std::shared_ptr<Ticket> ticket = Find(id)) ticket->stopped = true;
  }

  void Drain(absl::Duration most) override {
    std::unique_lock lock(mutex_);
    draining_ = drained_ = true;
    const auto empty = [this] { return idle_ && arrived_.empty() && fetching_.empty(); };
    if (WaitFor(emptied_, lock, most, empty)) return;
    for (const auto& [id, weak] : tickets_) {
      const std::shared_ptr<Ticket> ticket = weak.lock();
      if (ticket != nullptr && !ticket->cancelled) ticket->drained = true;
    }
    CancelAll();
    WaitFor(emptied_, lock, options_.time_to_cancel, empty);
  }

  SchedulerStats stats() const override {
    const std::lock_guard lock(mutex_);
    SchedulerStats stats = stats_;
    stats.waiting += arrived_.size() + fetching_.size();
    stats.refused = refused_;
    if (options_.shared_prefixes != nullptr) stats.shared = options_.shared_prefixes->stats();
    return stats;
  }

  size_t context() const override { return batcher_->context(); }

 private:
  using Tickets = std::list<std::shared_ptr<Ticket>>;

  // Null when its answers have ended.
  std::shared_ptr<Ticket> Find(uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto at = tickets_.find(id);
    return at == tickets_.end() ? nullptr : at->second.lock();
  }

  // Lets the ticket arrive, at once or when what other servers have of its prompt was fetched.
  // Under the lock, as the next two.
  void Fetch(std::shared_ptr<Ticket> ticket) {
    const auto at = fetching_.insert(fetching_.end(), std::move(ticket));
    // Later calls allocate nothing, so that no ticket is lost.
    const auto fetched = [this, at](FetchedPrefix prefix) {
      const std::lock_guard lock(mutex_);
      (*at)->fetched = std::move(prefix);
      Arrive(at);
    };
    if (!batcher_->Fetch(**at, fetched)) Arrive(at);
  }

  void Arrive(Tickets::iterator at) {
    arrived_.splice(arrived_.end(), fetching_, at);
    work_.notify_one();
  }

  void CancelAll() {
    for (const auto& [id, weak] : tickets_) {
      if (const std::shared_ptr<Ticket> ticket = weak.lock()) ticket->cancelled = true;
    }
  }

  // Forgets tickets that nobody else has, whenever their number has doubled.
  void ForgetEnded() {
    if (tickets_.size() < forget_at_) return;
    std::erase_if(tickets_, [](const auto& entry) { return entry.second.expired(); });
    forget_at_ = std::max<size_t>(64, 2 * tickets_.size());
  }

  // On the scheduler's thread, as all that follow.
  void Publish() {
    const std::lock_guard lock(mutex_);
    stats_ = batcher_->stats();
    stats_.waiting += taken_.size();
  }

  // Waits for something to do, and takes the requests that have arrived. False once there is
  // nothing more to do.
  bool Next() {
    Publish();
    std::unique_lock lock(mutex_);
    if (batcher_->idle()) {
      idle_ = true;
      if (arrived_.empty() && fetching_.empty()) emptied_.notify_all();
      work_.wait(lock, [this] { return !arrived_.empty() || (stop_ && fetching_.empty()); });
      if (arrived_.empty()) return false;
    }
    idle_ = false;
    // Until the batcher's figures are published again, they count as waiting here.
    taken_.swap(arrived_);
    stats_.waiting += taken_.size();
    return true;
  }

  void Run() {
    batcher_->OnCounted([this] { Publish(); });
    while (Next()) {
      // What has no memory here ends answers (see ~Answer), and those alone.
      for (; !taken_.empty(); taken_.pop_front()) batcher_->Add(taken_.front());
      batcher_->Step();
    }
    if (!drained_) return;
    (void)OrOutOfMemory("what others may need", [&] {
      batcher_->OfferAll(kTimeToStore);
      return absl::OkStatus();
    });
  }

  const std::unique_ptr<Batcher> batcher_;
  const SchedulerOptions options_;
  mutable std::mutex mutex_;         // guards the members below, but for the thread
  std::condition_variable work_;     // something arrived, or stop_
  std::condition_variable emptied_;  // idle_, and nothing arrived
  Tickets fetching_, arrived_;
  std::unordered_map<uint64_t, std::weak_ptr<Ticket>> tickets_;
  size_t forget_at_ = 64;
  uint64_t last_id_ = 0;
  uint64_t refused_ = 0;
  bool draining_ = false;
  bool drained_ = false;  // by Drain
  bool stop_ = false;
  bool idle_ = true;
  SchedulerStats stats_;
  Tickets taken_;       // the thread's own: what it has yet to give to the batcher
  std::thread thread_;  // last: it uses all others
};

}  // namespace

absl::StatusOr<std::unique_ptr<Scheduler>> Scheduler::Create(Engine& engine,
                                                             const Tokenizer& tokenizer,
                                                             const SchedulerOptions& options) {
  INLAY_ASSIGN_OR_RETURN(std::unique_ptr<Batcher> batcher,
                         Batcher::Create(engine, tokenizer, options));
  return OrOutOfMemory("the scheduler", [&]() -> absl::StatusOr<std::unique_ptr<Scheduler>> {
    return std::make_unique<ThreadedScheduler>(std::move(batcher), options);
  });
}

}  // namespace inlay::serve
