// The callback that a thread's long calls poll, to learn whether to go on.
#ifndef INLAY_GEMMA_LIKE_C_API_WATCH_H_
#define INLAY_GEMMA_LIKE_C_API_WATCH_H_

#include <chrono>

#include "absl/status/status.h"
#include "gemma_like/engine.h"
#include "gemma_like/inlay_c.h"

namespace inlay::c_api {

class SharedModel;

// Of one call. Asks the callback that inlay_set_poll() has set in this thread, at first after
// kInterval and then once in it: a step of a few milliseconds never pays for it.
class Watch {
 public:
  static constexpr auto kInterval = std::chrono::milliseconds(20);

  // `model`: the one that the call computes with; null: none.
  explicit Watch(const SharedModel* model);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  // Whether the callback has asked for an end.
  bool Cancelled();

  // For the engine; null where the thread has no callback. The watch must outlive it.
  CancelCheck Check();

 private:
  friend absl::Status CheckNotAsking(const SharedModel& model);

  using Clock = std::chrono::steady_clock;

  const SharedModel* const model_;
  const inlay_poll_callback callback_;
  void* const user_;
  Clock::time_point next_;
  bool cancelled_ = false;
  const Watch* outer_ = nullptr;  // while the callback runs: the one within whose callback it does
};

// FailedPrecondition within a callback that a call with this model asks. Its engine runs one pass
// at a time, so a second one would wait for the first, and the first for the callback.
absl::Status CheckNotAsking(const SharedModel& model);

void SetPoll(inlay_poll_callback callback, void* user);

}  // namespace inlay::c_api

#endif  // INLAY_GEMMA_LIKE_C_API_WATCH_H_
