// Accepts the connections that come to one address.
#ifndef INLAY_SERVE_HTTP_HTTP_LISTENER_H_
#define INLAY_SERVE_HTTP_HTTP_LISTENER_H_

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "serve/http/http_connection.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

using HttpAcceptor = boost::asio::basic_socket_acceptor<boost::asio::ip::tcp, HttpExecutor>;

// Binds all addresses of `options.host` to one port. Errors as of HttpServer::Start.
absl::StatusOr<std::vector<HttpAcceptor>> BindAddresses(boost::asio::io_context& context,
                                                        const HttpOptions& options);

// Lives until its io_context has run out of work.
class HttpListener {
 public:
  using OnAccept = std::function<void(HttpSocket socket)>;

  // `on_accept` is called on the context's threads; it may throw.
  HttpListener(boost::asio::io_context& context, HttpAcceptor acceptor, OnAccept on_accept);

  void Start();
  void Stop();

 private:
  void Await() noexcept;
  // Accepts those that wait; false where the system has nothing to accept them with.
  bool AcceptSome();

  boost::asio::io_context& context_;
  std::mutex mutex_;  // guards what follows
  HttpAcceptor acceptor_;
  HttpTimer pause_;
  OnAccept on_accept_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HTTP_LISTENER_H_
