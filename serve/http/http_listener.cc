#include "serve/http/http_listener.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace inlay::serve {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

namespace {

// How long nothing is accepted after the system had no descriptor or memory for a connection. Those
// who come in the meantime wait in the system's queue.
constexpr std::chrono::milliseconds kAcceptPause{100};

// Whether the error says something about this address only, so that another may do.
bool IsOfAddress(const error_code& error) {
  return error == asio::error::address_family_not_supported || error.value() == EADDRNOTAVAIL ||
         error.value() == EPROTONOSUPPORT;
}

bool IsOfResources(const error_code& error) {
  return error.value() == EMFILE || error.value() == ENFILE || error.value() == ENOBUFS ||
         error.value() == ENOMEM;
}

absl::Status BindError(const error_code& error, const HttpOptions& options) {
  const std::string message = absl::StrCat("cannot listen on ", options.host, " port ",
                                           options.port, ": ", error.message());
  if (error == asio::error::address_in_use) return absl::UnavailableError(message);
  if (error == asio::error::access_denied) return absl::PermissionDeniedError(message);
  if (IsOfResources(error)) {
    return absl::ResourceExhaustedError(message);
  }
  return absl::InvalidArgumentError(message);
}

HttpAcceptor BindAcceptor(asio::io_context& context, const tcp::endpoint& endpoint,
                          error_code& error) {
  HttpAcceptor acceptor(context.get_executor());
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  // "::" is every address, of IPv4 as well.
  if (!error && endpoint.address().is_v6()) {
    acceptor.set_option(asio::ip::v6_only(!endpoint.address().is_unspecified()), error);
  }
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.non_blocking(true, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  return acceptor;
}

// All addresses at one port. Leaves out those that this machine does not have; `error` is set where
// another cannot be bound, or none is left.
std::vector<HttpAcceptor> BindAll(asio::io_context& context,
                                  const tcp::resolver::results_type& addresses, uint16_t port,
                                  error_code& error) {
  std::vector<HttpAcceptor> bound;
  error_code missing = asio::error::host_not_found;
  for (const auto& address : addresses) {
    HttpAcceptor acceptor =
        BindAcceptor(context, tcp::endpoint(address.endpoint().address(), port), error);
    if (error && !IsOfAddress(error)) return {};
    if (error) {
      missing = error;
      continue;
    }
    if (port == 0) port = acceptor.local_endpoint(error).port();
    bound.push_back(std::move(acceptor));
  }
  error = bound.empty() ? missing : error_code();
  return bound;
}

}  // namespace

absl::StatusOr<std::vector<HttpAcceptor>> BindAddresses(asio::io_context& context,
                                                        const HttpOptions& options) {
  if (options.host.empty()) return absl::InvalidArgumentError("there is no address to listen on");
  error_code error;
  tcp::resolver resolver(context);
  const auto addresses = resolver.resolve(options.host, "0", tcp::resolver::numeric_service, error);
  if (error) return BindError(error, options);
  // A free port of the first address may be in use at the second.
  for (int attempts = options.port == 0 ? 8 : 1; attempts > 0; --attempts) {
    std::vector<HttpAcceptor> bound = BindAll(context, addresses, options.port, error);
    if (!error) return bound;
    if (error != asio::error::address_in_use) break;
  }
  return BindError(error, options);
}

HttpListener::HttpListener(asio::io_context& context, HttpAcceptor acceptor, OnAccept on_accept)
    : context_(context),
      acceptor_(std::move(acceptor)),
      pause_(acceptor_.get_executor()),
      on_accept_(std::move(on_accept)) {}

void HttpListener::Start() {
  const std::lock_guard lock(mutex_);
  Await();
}

void HttpListener::Stop() {
  const std::lock_guard lock(mutex_);
  error_code error;
  acceptor_.close(error);
  pause_.cancel();
}

// Accepting itself is not left to Asio: if memory runs out in there it never calls back.
void HttpListener::Await() noexcept {
  const auto accept = [this](const error_code&) {
    const std::lock_guard lock(mutex_);
    if (!acceptor_.is_open()) return;
    try {
      if (!AcceptSome()) {
        pause_.expires_after(kAcceptPause);
        pause_.async_wait([this](const error_code&) {
          const std::lock_guard lock(mutex_);
          Await();
        });
        return;
      }
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kAcceptPause);
    }
    Await();
  };
  while (acceptor_.is_open()) {
    try {
      return acceptor_.async_wait(HttpAcceptor::wait_read, accept);
    } catch (const std::exception&) {
      std::this_thread::sleep_for(kAcceptPause);
    }
  }
}

bool HttpListener::AcceptSome() {
  constexpr int kMostAtOnce = 16;
  for (int i = 0; i < kMostAtOnce; ++i) {
    HttpSocket socket(context_.get_executor());
    error_code error;
    acceptor_.accept(socket, error);
    if (IsOfResources(error)) return false;
    if (error == asio::error::would_block) return true;
    if (!error) on_accept_(std::move(socket));
  }
  return true;
}

}  // namespace inlay::serve
