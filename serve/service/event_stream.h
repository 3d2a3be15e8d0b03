// A reply that is a stream of server-sent events, from its beginning to its end.
#ifndef INLAY_SERVE_SERVICE_EVENT_STREAM_H_
#define INLAY_SERVE_SERVICE_EVENT_STREAM_H_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// The stream of the client whose request it answers, and of those who follow it. Bytes are events,
// as serve/api writes them; without a reader they are dropped. The lock of its owner guards it.
class EventStream {
 public:
  EventStream();

  // Starts the stream of the request itself, once.
  void Start(const std::shared_ptr<HttpReply>& reply);
  bool started() const { return started_; }
  // Starts the stream of another client, which begins with these bytes.
  void Join(const std::shared_ptr<HttpReply>& reply, std::string bytes);
  bool has_readers() const { return !readers_.empty(); }

  void Write(const std::string& bytes);
  // Whether nothing was written since `before`, a value of SteadyNow().
  bool IsSilentSince(absl::Time before) const { return last_written_ < before; }
  // Ends it; to be called once.
  void Finish();
  // Ends it with the bytes that `event` returns. Without memory for them it is cut off.
  void Fail(absl::FunctionRef<std::string()> event) noexcept;

 private:
  struct Reader {
    std::shared_ptr<HttpReply> reply;
    std::shared_ptr<const std::atomic<bool>> gone;  // null: it stays in any case
  };
  // Starts the reply as a stream and adds its reader; without memory, neither.
  void Add(Reader reader);

  std::vector<Reader> readers_;
  bool started_ = false;
  absl::Time last_written_;
};

// Sends a whole stream at once.
void SendEvents(HttpReply& reply, std::string bytes);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_EVENT_STREAM_H_
