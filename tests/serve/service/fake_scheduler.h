// A scheduler that computes nothing: it keeps the requests, and a test answers them.
#ifndef INLAY_TESTS_SERVE_SERVICE_FAKE_SCHEDULER_H_
#define INLAY_TESTS_SERVE_SERVICE_FAKE_SCHEDULER_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "serve/scheduler/answer_request.h"
#include "serve/scheduler/scheduler.h"

namespace inlay::serve {

// For one thread.
class FakeScheduler final : public Scheduler {
 public:
  struct Asked {
    AnswerRequest request;
    std::shared_ptr<AnswerListener> listener;
  };

  absl::StatusOr<uint64_t> Submit(AnswerRequest request,
                                  std::shared_ptr<AnswerListener> listener) override {
    if (asked.size() >= places) return refusal;
    asked.push_back({std::move(request), std::move(listener)});
    return asked.size();
  }
  // The answers end before this returns.
  void Cancel(uint64_t id) override { End(id, absl::CancelledError("cancelled")); }
  void Stop(uint64_t) override {}
  void Drain(absl::Duration) override {}
  SchedulerStats stats() const override { return {}; }
  size_t context() const override { return 512; }

  // Tells the ends of the answers to the request of this number, the first of which is 1.
  void End(uint64_t id, const absl::Status& status = absl::OkStatus()) {
    const Asked& ended = asked.at(id - 1);
    for (size_t choice = 0; choice < ended.request.choices; ++choice) {
      AnswerEnd end;
      end.choice = choice;
      end.status = status;
      ended.listener->OnEnd(end);
    }
  }

  size_t places = std::numeric_limits<size_t>::max();  // for requests; others are refused
  absl::Status refusal = absl::ResourceExhaustedError("too many requests wait already");
  std::vector<Asked> asked;
};

}  // namespace inlay::serve

#endif  // INLAY_TESTS_SERVE_SERVICE_FAKE_SCHEDULER_H_
