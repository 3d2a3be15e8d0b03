#include "gemma_like/c_api/watch.h"

namespace inlay::c_api {
namespace {

thread_local inlay_poll_callback poll_callback = nullptr;
thread_local void* poll_user = nullptr;

}  // namespace

void SetPoll(inlay_poll_callback callback, void* user) {
  poll_callback = callback;
  poll_user = user;
}

Watch::Watch() : callback_(poll_callback), user_(poll_user) {
  if (callback_ != nullptr) next_ = Clock::now() + kInterval;
}

bool Watch::Cancelled() {
  if (callback_ == nullptr || cancelled_) return cancelled_;
  if (Clock::now() < next_) return false;
  cancelled_ = callback_(user_) != 0;
  next_ = Clock::now() + kInterval;
  return cancelled_;
}

CancelCheck Watch::Check() {
  if (callback_ == nullptr) return nullptr;
  return [this] { return Cancelled(); };
}

}  // namespace inlay::c_api
