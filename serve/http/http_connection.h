// One client's connection: reads requests, has them checked, hands them to the handler and sends
// the replies, one at a time.
#ifndef INLAY_SERVE_HTTP_HTTP_CONNECTION_H_
#define INLAY_SERVE_HTTP_HTTP_CONNECTION_H_

#include <atomic>
#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"
#include "serve/http/reply_queue.h"
#include "serve/http/request_parser.h"

namespace inlay::serve {

using HttpExecutor = boost::asio::io_context::executor_type;
using HttpSocket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, HttpExecutor>;
using HttpTimer = boost::asio::basic_waitable_timer<
    std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, HttpExecutor>;

class HttpConnection;

// What a connection needs of its server, which outlives it.
class ConnectionOwner {
 public:
  virtual const HttpOptions& options() const = 0;
  virtual const HttpHandler& handler() const = 0;
  virtual bool draining() const = 0;
  // The bytes of all bodies that are held.
  virtual const std::shared_ptr<std::atomic<size_t>>& body_bytes() const = 0;
  // The connection has ended; the owner drops it.
  virtual void Remove(HttpConnection* connection) noexcept = 0;

 protected:
  ~ConnectionOwner() = default;
};

// What happens to a connection happens under its lock, on any of the server's threads. (Asio's
// strands would do without, but one that runs out of memory stands still for ever.)
class HttpConnection final : public std::enable_shared_from_this<HttpConnection>,
                             public ReplySender {
 public:
  HttpConnection(HttpSocket socket, ConnectionOwner* owner);

  // Serves from now on.
  void Start();
  // Ends an idle connection, and returns whether it was one. (While the owner drains, the others
  // end after their next reply.)
  bool EndIfIdle();
  // Since when the connection has waited for another request after its last reply, in ticks of the
  // steady clock; kNotIdle where it does not. Without the lock.
  int64_t idle_since() const { return idle_since_; }
  static constexpr int64_t kNotIdle = std::numeric_limits<int64_t>::max();
  // Ends the connection at once, on one of the server's threads.
  void Stop() noexcept;

 private:
  enum class State {
    kIdle,    // no byte of the next request has come
    kHeader,  // reads a request's header
    kBody,    // reads its body
    kReply,   // the handler has it, or the reply is on its way
    kLinger,  // nothing more is sent; reads, and drops, what the client still sends
    kClosed,
  };
  using Time = std::chrono::steady_clock::time_point;

  // Has one of the server's threads do `act`.
  template <typename Act>
  void Post(Act act);
  // What Asio calls: keeps the connection alive, takes its lock, does `act`.
  template <typename Act>
  auto Locked(Act act);
  // Does `act`; ends the request if memory runs out, the connection if another exception comes.
  template <typename Act>
  void Try(const Act& act) noexcept;
  void OnOutOfMemory() noexcept;

  // http_connection.cc: the socket's side.
  bool Wake() noexcept override;
  bool ends_after_reply() const override { return owner_->draining(); }
  void Begin();
  void Read();
  void OnReadable(const boost::system::error_code& error);
  void OnEnd();
  void Flush();
  void OnWritten(const boost::system::error_code& error, size_t count);
  void SetDeadline(absl::Duration from_now);
  void ArmTimer();
  void OnTimer(const boost::system::error_code& error);
  void Linger();
  void Close() noexcept;

  // http_dialogue.cc: what the bytes mean.
  void Advance();
  void OnHeader();
  void Dispatch();
  void ReplyToOptions(const HttpRequest& request);
  void OnDeadline();
  void OnReplySent();
  bool HoldBody();
  void MakeQueue(bool keep_alive);
  void Refuse(int status, absl::string_view message);
  void Restart();

  ConnectionOwner* const owner_;
  std::mutex mutex_;  // taken before the reply's; guards all that follows
  HttpSocket socket_;
  HttpTimer timer_;
  Time deadline_ = Time::max();  // of what the connection does now
  Time armed_ = Time::max();     // when the timer fires next
  State state_ = State::kIdle;
  bool reading_ = false;  // waits for the socket to become readable
  bool writing_ = false;
  bool ended_ = false;       // the client sends nothing more
  bool last_taken_ = false;  // the reply's last bytes are in `out_`
  std::string in_;           // read, not yet parsed
  std::string out_;          // being sent, of which `sent_` bytes have been
  size_t sent_ = 0;
  bool reused_ = false;                         // has begun to read a request
  std::atomic<int64_t> idle_since_ = kNotIdle;  // see idle_since(), which reads it without the lock
  std::string path_;                            // of the request, decoded; "" where it is no path
  std::unique_ptr<RequestParser> parser_;       // kHeader, kBody
  std::shared_ptr<ReplyQueue> reply_;           // kReply
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HTTP_CONNECTION_H_
