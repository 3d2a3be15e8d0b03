// Accepts the connections that come to one address.
#ifndef INLAY_SERVE_HTTP_HTTP_LISTENER_H_
#define INLAY_SERVE_HTTP_HTTP_LISTENER_H_

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <memory>
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

  // `on_accept` is called on the acceptor's strand; it must not throw.
  HttpListener(boost::asio::io_context& context, HttpAcceptor acceptor, OnAccept on_accept);

  // Any thread.
  void Start();
  void Stop();

 private:
  void Accept() noexcept;
  void OnAccepted(const boost::system::error_code& error, HttpSocket socket) noexcept;

  boost::asio::io_context& context_;
  HttpAcceptor acceptor_;
  HttpTimer pause_;
  OnAccept on_accept_;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HTTP_LISTENER_H_
