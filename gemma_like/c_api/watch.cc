#include "gemma_like/c_api/watch.h"

#include "absl/cleanup/cleanup.h"

namespace inlay::c_api {
namespace {

thread_local inlay_poll_callback poll_callback = nullptr;
thread_local void* poll_user = nullptr;
thread_local const Watch* asking = nullptr;  // whose callback runs

}  // namespace

void SetPoll(inlay_poll_callback callback, void* user) {
  poll_callback = callback;
  poll_user = user;
}

Watch::Watch(const SharedModel* model) : model_(model), callback_(poll_callback), user_(poll_user) {
  if (callback_ != nullptr) next_ = Clock::now() + kInterval;
}

bool Watch::Cancelled() {
  if (callback_ == nullptr || cancelled_) return cancelled_;
  if (Clock::now() < next_) return false;
  outer_ = asking;
  asking = this;
  const absl::Cleanup restore = [this] { asking = outer_; };
  cancelled_ = callback_(user_) != 0;
  next_ = Clock::now() + kInterval;
  return cancelled_;
}

CancelCheck Watch::Check() {
  if (callback_ == nullptr) return nullptr;
  return [this] { return Cancelled(); };
}

absl::Status CheckNotAsking(const SharedModel& model) {
  for (const Watch* watch = asking; watch != nullptr; watch = watch->outer_) {
    if (watch->model_ != &model) continue;
    return absl::FailedPreconditionError(
        "the callback of inlay_set_poll() cannot use the model of the call that asks it");
  }
  return absl::OkStatus();
}

}  // namespace inlay::c_api
