// The server on Asio: its listeners, its threads, its connections.
#include <algorithm>
#include <atomic>
#include <boost/asio/buffer.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "base/wait_for.h"
#include "serve/http/http_connection.h"
#include "serve/http/http_listener.h"
#include "serve/http/http_server.h"
#include "serve/http/reply_head.h"

namespace inlay::serve {
namespace {

namespace asio = boost::asio;

class AsioServer final : public HttpServer, public ConnectionOwner {
 public:
  AsioServer(HttpOptions options, HttpHandler handler)
      : options_(std::move(options)),
        handler_(std::move(handler)),
        work_(asio::make_work_guard(context_)) {}
  ~AsioServer() override;

  absl::Status Begin();

  uint16_t port() const override { return port_; }
  size_t connections() const override;
  void Drain(absl::Duration most) override;

  const HttpOptions& options() const override { return options_; }
  const HttpHandler& handler() const override { return handler_; }
  bool draining() const override { return draining_; }
  const std::shared_ptr<std::atomic<size_t>>& body_bytes() const override { return body_bytes_; }
  void Remove(HttpConnection* connection) noexcept override;

 private:
  void Run() noexcept;
  void OnAccept(HttpSocket socket);
  bool EndLongestIdle();
  void TurnAway(HttpSocket socket);
  void StopAccepting();

  const HttpOptions options_;
  const HttpHandler handler_;
  uint16_t port_ = 0;
  std::atomic<bool> draining_ = false;
  const std::shared_ptr<std::atomic<size_t>> body_bytes_ = std::make_shared<std::atomic<size_t>>(0);

  // After the context's end no connection is left that would call Remove.
  mutable std::mutex mutex_;
  std::condition_variable none_left_;
  std::map<HttpConnection*, std::shared_ptr<HttpConnection>> connections_;

  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::deque<HttpListener> listeners_;
  std::vector<std::thread> threads_;
};

absl::Status AsioServer::Begin() {
  INLAY_ASSIGN_OR_RETURN(std::vector<HttpAcceptor> acceptors, BindAddresses(context_, options_));
  boost::system::error_code error;
  port_ = acceptors.front().local_endpoint(error).port();
  for (HttpAcceptor& acceptor : acceptors) {
    listeners_.emplace_back(context_, std::move(acceptor),
                            [this](HttpSocket socket) { OnAccept(std::move(socket)); });
  }
  for (size_t i = 0; i < std::max<size_t>(options_.threads, 1); ++i) {
    threads_.emplace_back([this] { Run(); });
  }
  for (HttpListener& listener : listeners_) listener.Start();
  return absl::OkStatus();
}

AsioServer::~AsioServer() {
  StopAccepting();
  // One by one, as a list of them would take memory.
  while (true) {
    std::shared_ptr<HttpConnection> connection;
    {
      const std::lock_guard lock(mutex_);
      if (connections_.empty()) break;
      connection = connections_.begin()->second;
      connections_.erase(connections_.begin());
    }
    connection->Stop();
  }
  work_.reset();
  for (std::thread& thread : threads_) {
    assert(thread.get_id() != std::this_thread::get_id());
    thread.join();
  }
}

void AsioServer::Run() noexcept {
  while (true) {
    try {
      context_.run();
      return;
    } catch (const std::exception&) {  // one event's; the others go on
    }
  }
}

size_t AsioServer::connections() const {
  const std::lock_guard lock(mutex_);
  return connections_.size();
}

void AsioServer::Remove(HttpConnection* connection) noexcept {
  const std::lock_guard lock(mutex_);
  connections_.erase(connection);
  if (connections_.empty()) none_left_.notify_all();
}

void AsioServer::OnAccept(HttpSocket socket) {
  if (connections() >= options_.most_connections && !EndLongestIdle())
    return TurnAway(std::move(socket));
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), this);
  {
    // Under the lock, so that a Drain that does not see the connection is seen here.
    const std::lock_guard lock(mutex_);
    if (draining_) return;
    connections_.emplace(connection.get(), connection);
  }
  connection->Start();
}

// Ends the connection that has waited longest for its next request, as a server may at any time:
// clients that keep connections without using them must not keep others out. False where no
// connection is idle, or its next request has just come.
bool AsioServer::EndLongestIdle() {
  std::shared_ptr<HttpConnection> longest;
  {
    const std::lock_guard lock(mutex_);
    int64_t since = HttpConnection::kNotIdle;
    for (const auto& [key, connection] : connections_) {
      const int64_t its_since = connection->idle_since();
      if (its_since >= since) continue;
      since = its_since;
      longest = connection;
    }
  }
  return longest != nullptr && longest->EndIfIdle();
}

// Sends an error without waiting and closes.
void AsioServer::TurnAway(HttpSocket socket) {
  constexpr int kStatus = 503;
  ReplyForm form;
  form.keep_alive = false;
  form.id = "too-many-connections";
  constexpr absl::string_view kMessage = "the server has as many connections as it serves";
  if (options_.on_refusal) options_.on_refusal(form.id, "", kStatus, kMessage);
  const std::string body = ErrorReplyBody(options_, "", kStatus, kMessage);
  const std::string reply =
      ReplyHead(form, kStatus, kErrorType, {{"Retry-After", "1"}}, body.size()) + body;
  boost::system::error_code error;
  socket.non_blocking(true, error);
  socket.write_some(asio::buffer(reply), error);
  socket.shutdown(HttpSocket::shutdown_send, error);
}

void AsioServer::StopAccepting() {
  draining_ = true;
  for (HttpListener& listener : listeners_) listener.Stop();
}

void AsioServer::Drain(absl::Duration most) {
  StopAccepting();
  try {
    std::vector<std::shared_ptr<HttpConnection>> connections;
    {
      const std::lock_guard lock(mutex_);
      connections.reserve(connections_.size());
      for (const auto& [key, connection] : connections_) connections.push_back(connection);
    }
    for (const auto& connection : connections) connection->EndIfIdle();
  } catch (const std::bad_alloc&) {
    // Each then ends after its next reply, or when it has been idle for long.
  }
  std::unique_lock lock(mutex_);
  WaitFor(none_left_, lock, most, [this] { return connections_.empty(); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(HttpOptions options,
                                                              HttpHandler handler) {
  return OrOutOfMemory("the HTTP server", [&]() -> absl::StatusOr<std::unique_ptr<HttpServer>> {
    auto server = std::make_unique<AsioServer>(std::move(options), std::move(handler));
    INLAY_RETURN_IF_ERROR(server->Begin());
    return server;
  });
}

}  // namespace inlay::serve
