// The bytes of one reply on their way from any thread to the connection that sends them.
#ifndef INLAY_SERVE_HTTP_REPLY_QUEUE_H_
#define INLAY_SERVE_HTTP_REPLY_QUEUE_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"
#include "serve/http/reply_head.h"

namespace inlay::serve {

// Empties a text. (Assigning an empty one would keep its memory.)
inline void FreeText(std::string& text) noexcept { std::string().swap(text); }

// Who takes bytes out of a queue.
class ReplySender {
 public:
  // There is something to Take. Called by any thread, which holds the queue's lock. False if there
  // was no memory to take notice.
  virtual bool Wake() noexcept = 0;
  // The connection ends after this reply, whatever its client wants. Called by any thread, which
  // holds the queue's lock, when the reply begins.
  virtual bool ends_after_reply() const = 0;

 protected:
  ~ReplySender() = default;
};

// Shared by a connection and the handler's HttpReply (MakeReply). All functions may be called by
// any thread.
class ReplyQueue {
 public:
  // What a Take has found.
  enum class Outcome {
    kOpen,      // more may come
    kFinished,  // these are the last bytes
    kBroken,    // the reply cannot go on: it was dropped, grew too long or ran out of memory
    kLost,      // the reply was dropped before it began
    kNoMemory,  // there was no memory for its beginning
  };

  // A stream may have `most_queued` bytes that were not sent. `sender` is called until Close.
  ReplyQueue(ReplyForm form, size_t most_queued, ReplySender* sender);

  // As HttpReply. They never throw: without memory the reply ends.
  void Send(int status, absl::string_view content_type, std::string body,
            const HttpHeaders& headers) noexcept;
  void StartStream(int status, absl::string_view content_type, const HttpHeaders& headers) noexcept;
  void Write(absl::string_view piece) noexcept;
  void Finish() noexcept;
  void OnGone(std::function<void()> gone);
  // Nobody will finish the reply any more.
  void Abandon() noexcept;
  // There is no memory to make the reply.
  void FailWithoutMemory() noexcept;

  // For the sender. Moves what is queued to `bytes`, which must be empty.
  Outcome Take(std::string& bytes);
  // So many of the bytes that were taken have been sent.
  void Sent(size_t count);
  // The sender is about to end. If the reply is not finished, its client is gone.
  void Close() noexcept;
  // Whether all of the reply is queued or sent.
  bool IsFinished() const;
  ReplyForm form() const;
  // Whether the connection goes on after the reply.
  bool KeepsConnection() const;

 private:
  enum class State { kNew, kStream, kFinished, kFailed };

  bool Begin(int status, absl::string_view content_type, const HttpHeaders& headers,
             const std::string* body);
  void Fail(Outcome new_reply);
  void Wake();

  mutable std::mutex mutex_;
  ReplyForm form_;
  const size_t most_queued_;
  ReplySender* sender_;  // null when closed
  State state_ = State::kNew;
  Outcome failure_ = Outcome::kBroken;  // for kFailed
  bool woken_ = false;                  // and not taken since
  bool has_body_ = true;                // pieces are sent, not dropped
  std::string queued_;
  size_t taken_ = 0;  // bytes that the sender has taken and not sent
  std::function<void()> gone_;
};

// A reply whose end is the end of the handler's interest: it abandons the queue.
std::shared_ptr<HttpReply> MakeReply(std::shared_ptr<ReplyQueue> queue);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_REPLY_QUEUE_H_
