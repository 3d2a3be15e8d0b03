#include "serve/http/reply_queue.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace inlay::serve {
namespace {

class QueuedReply final : public HttpReply {
 public:
  explicit QueuedReply(std::shared_ptr<ReplyQueue> queue) : queue_(std::move(queue)) {}
  ~QueuedReply() override { queue_->Abandon(); }

  void Send(int status, absl::string_view content_type, std::string body,
            HttpHeaders headers) override {
    queue_->Send(status, content_type, std::move(body), headers);
  }
  void StartStream(int status, absl::string_view content_type, HttpHeaders headers) override {
    queue_->StartStream(status, content_type, headers);
  }
  void Write(std::string piece) override { queue_->Write(piece); }
  void Finish() override { queue_->Finish(); }
  void FailWithoutMemory() noexcept override { queue_->FailWithoutMemory(); }
  void OnGone(std::function<void()> gone) override { queue_->OnGone(std::move(gone)); }

 private:
  std::shared_ptr<ReplyQueue> queue_;
};

// Calls what a client's end was to call. It runs on a thread that serves others, too.
void CallGone(const std::function<void()>& gone) noexcept {
  if (!gone) return;
  try {
    gone();
  } catch (const std::exception&) {  // it had no memory to do its work; the server goes on
  }
}

}  // namespace

std::shared_ptr<HttpReply> MakeReply(std::shared_ptr<ReplyQueue> queue) {
  return std::make_shared<QueuedReply>(std::move(queue));
}

ReplyQueue::ReplyQueue(ReplyForm form, size_t most_queued, ReplySender* sender)
    : form_(std::move(form)), most_queued_(most_queued), sender_(sender) {}

// Queues the head and, of a whole reply, the body. False where the reply has begun or ended before.
bool ReplyQueue::Begin(int status, absl::string_view content_type, const HttpHeaders& headers,
                       const std::string* body) {
  if (state_ != State::kNew || sender_ == nullptr) return false;
  has_body_ = !form_.without_body && MayHaveBody(status);
  if (body == nullptr && !form_.http_1_1) form_.keep_alive = false;
  if (sender_->ends_after_reply()) form_.keep_alive = false;
  try {
    queued_ = ReplyHead(form_, status, content_type, headers,
                        body == nullptr ? std::nullopt : std::optional<size_t>(body->size()));
    if (body != nullptr && has_body_) queued_ += *body;
  } catch (const std::bad_alloc&) {
    FreeText(queued_);
    Fail(Outcome::kNoMemory);
    return false;
  }
  return true;
}

void ReplyQueue::Send(int status, absl::string_view content_type, std::string body,
                      const HttpHeaders& headers) noexcept {
  std::function<void()> dropped;  // destroyed without the lock, as it may hold this reply
  const std::lock_guard lock(mutex_);
  if (!Begin(status, content_type, headers, &body)) return;
  state_ = State::kFinished;
  dropped = std::move(gone_);
  Wake();
}

void ReplyQueue::StartStream(int status, absl::string_view content_type,
                             const HttpHeaders& headers) noexcept {
  const std::lock_guard lock(mutex_);
  if (!Begin(status, content_type, headers, nullptr)) return;
  state_ = State::kStream;
  Wake();
}

void ReplyQueue::Write(absl::string_view piece) noexcept {
  const std::lock_guard lock(mutex_);
  assert(state_ != State::kNew || sender_ == nullptr);  // StartStream comes first
  if (state_ != State::kStream || sender_ == nullptr || !has_body_ || piece.empty()) return;
  if (queued_.size() + taken_ > most_queued_) return Fail(Outcome::kBroken);
  try {
    if (form_.http_1_1) {
      absl::StrAppend(&queued_, absl::Hex(piece.size()), "\r\n", piece, "\r\n");
    } else {
      queued_.append(piece.data(), piece.size());
    }
  } catch (const std::bad_alloc&) {
    return Fail(Outcome::kBroken);
  }
  Wake();
}

void ReplyQueue::Finish() noexcept {
  std::function<void()> dropped;
  const std::lock_guard lock(mutex_);
  assert(state_ != State::kNew || sender_ == nullptr);
  if (state_ != State::kStream || sender_ == nullptr) return;
  try {
    if (form_.http_1_1 && has_body_) queued_ += "0\r\n\r\n";
  } catch (const std::bad_alloc&) {
    return Fail(Outcome::kBroken);
  }
  state_ = State::kFinished;
  dropped = std::move(gone_);
  Wake();
}

void ReplyQueue::OnGone(std::function<void()> gone) {
  {
    const std::lock_guard lock(mutex_);
    if (state_ == State::kFinished) return;
    if (sender_ != nullptr) {
      assert(gone_ == nullptr);
      gone_ = std::move(gone);
      return;
    }
  }
  CallGone(gone);
}

void ReplyQueue::Abandon() noexcept {
  std::function<void()> dropped;
  const std::lock_guard lock(mutex_);
  if (state_ == State::kFinished) return;
  dropped = std::move(gone_);
  Fail(Outcome::kLost);
}

void ReplyQueue::FailWithoutMemory() noexcept {
  const std::lock_guard lock(mutex_);
  Fail(Outcome::kNoMemory);
}

// `new_reply` is what becomes of a reply of which nothing was queued yet.
void ReplyQueue::Fail(Outcome new_reply) {
  if (sender_ == nullptr || state_ == State::kFinished || state_ == State::kFailed) return;
  failure_ = state_ == State::kNew ? new_reply : Outcome::kBroken;
  state_ = State::kFailed;
  Wake();
}

void ReplyQueue::Wake() {
  if (sender_ != nullptr && !woken_) woken_ = sender_->Wake();
}

ReplyQueue::Outcome ReplyQueue::Take(std::string& bytes) {
  assert(bytes.empty());
  const std::lock_guard lock(mutex_);
  woken_ = false;
  if (state_ == State::kFailed) return failure_;
  bytes.swap(queued_);
  taken_ += bytes.size();
  return state_ == State::kFinished ? Outcome::kFinished : Outcome::kOpen;
}

void ReplyQueue::Sent(size_t count) {
  const std::lock_guard lock(mutex_);
  taken_ -= std::min(taken_, count);
}

void ReplyQueue::Close() noexcept {
  std::function<void()> gone;
  {
    const std::lock_guard lock(mutex_);
    sender_ = nullptr;
    FreeText(queued_);
    gone = std::move(gone_);
  }
  CallGone(gone);
}

bool ReplyQueue::IsFinished() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kFinished;
}

ReplyForm ReplyQueue::form() const {
  const std::lock_guard lock(mutex_);
  return form_;
}

bool ReplyQueue::KeepsConnection() const {
  const std::lock_guard lock(mutex_);
  return form_.keep_alive;
}

}  // namespace inlay::serve
