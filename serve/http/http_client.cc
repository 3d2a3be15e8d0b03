#include "serve/http/http_client.h"

#include <algorithm>
#include <array>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/system/system_error.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "base/steady_time.h"
#include "base/url_text.h"

namespace inlay::serve {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::system::error_code;
using Tcp = asio::ip::tcp;

constexpr size_t kPiece = 16 << 10;               // bytes of a body, at most
constexpr std::uint32_t kMostHeader = 256 << 10;  // bytes
constexpr std::chrono::milliseconds kLook(20);    // between looks at `cancel`

absl::Status BadAddress(absl::string_view url, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(QuoteForMessage(url), " ", what));
}

// One request and its reply.
class Exchange {
 public:
  Exchange(const HttpAddress& address, const std::function<bool()>& cancel)
      : address_(address), cancel_(cancel), resolver_(context_), socket_(context_) {}

  absl::Status Connect(absl::Duration most) {
    const absl::Time end = SteadyNow() + most;
    Tcp::resolver::results_type found;
    resolver_.async_resolve(address_.host, address_.port,
                            [&](error_code error, Tcp::resolver::results_type results) {
                              found = std::move(results);
                              Done(error);
                            });
    INLAY_RETURN_IF_ERROR(Wait("cannot connect to", end));
    asio::async_connect(socket_, found,
                        [&](error_code error, const Tcp::endpoint&) { Done(error); });
    return Wait("cannot connect to", end);
  }

  absl::Status Send(const ClientRequest& request) {
    http::request<http::string_body> message;
    message.method_string(request.method);
    message.target(address_.path + request.path);
    message.version(11);
    message.set(http::field::host, address_.Authority());
    message.set(http::field::connection, "close");
    for (const auto& [name, value] : request.headers) message.insert(name, value);
    message.body() = request.body;
    message.prepare_payload();
    http::async_write(socket_, message, [&](error_code error, size_t) { Done(error); });
    return Wait("cannot send to");
  }

  absl::StatusOr<int> Read(absl::FunctionRef<void(int, absl::string_view)> on_body) {
    constexpr absl::string_view kWhat = "the reply ends too early, of";
    http::response_parser<http::buffer_body> parser;
    parser.header_limit(kMostHeader);
    parser.body_limit(std::numeric_limits<std::uint64_t>::max());
    http::async_read_header(socket_, buffer_, parser,
                            [&](error_code error, size_t) { Done(error); });
    INLAY_RETURN_IF_ERROR(Wait("no reply comes from"));
    const int status = parser.get().result_int();
    std::array<char, kPiece> piece;
    while (!parser.is_done()) {
      http::buffer_body::value_type& body = parser.get().body();
      body.data = piece.data();
      body.size = piece.size();
      body.more = true;
      http::async_read_some(socket_, buffer_, parser, [&](error_code error, size_t) {
        Done(error == http::error::need_buffer ? error_code() : error);
      });
      INLAY_RETURN_IF_ERROR(Wait(kWhat));
      const size_t size = piece.size() - body.size;
      if (size > 0) on_body(status, {piece.data(), size});
    }
    return status;
  }

 private:
  void Done(error_code error) {
    error_ = error;
    done_ = true;
  }

  // Waits for what was started last.
  absl::Status Wait(absl::string_view what, absl::Time end = absl::InfiniteFuture()) {
    done_ = false;
    context_.restart();
    while (!done_) {
      const bool cancelled = cancel_();
      if (cancelled || SteadyNow() > end) {
        Stop();
        if (cancelled) return absl::CancelledError("the request was cancelled");
        return Fail(what, "it takes too long");
      }
      context_.run_for(kLook);
    }
    return error_ ? Fail(what, error_.message()) : absl::OkStatus();
  }

  // Ends what was started, which may still use variables of its starter.
  void Stop() {
    error_code ignored;
    resolver_.cancel();
    socket_.close(ignored);
    while (!done_) context_.run_for(kLook);
  }

  absl::Status Fail(absl::string_view what, absl::string_view why) const {
    return absl::UnavailableError(
        absl::StrCat(what, " the server at ", address_.Authority(), ": ", why));
  }

  const HttpAddress& address_;
  const std::function<bool()>& cancel_;
  asio::io_context context_;
  Tcp::resolver resolver_;
  Tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
  error_code error_;
  bool done_ = false;
};

}  // namespace

absl::StatusOr<HttpAddress> HttpAddress::Parse(absl::string_view url) {
  absl::string_view rest = url;
  const size_t scheme = rest.find("://");
  const std::string name = absl::AsciiStrToLower(rest.substr(0, scheme));
  if (name == "https") {
    return BadAddress(url,
                      "asks for TLS, which is a proxy's business: give the http:// address of "
                      "one that speaks it");
  }
  if (scheme == absl::string_view::npos || name != "http")
    return BadAddress(url, "is no address of a server: http://HOST[:PORT] is expected");
  rest.remove_prefix(scheme + 3);
  HttpAddress address;
  const size_t slash = std::min(rest.find('/'), rest.size());
  address.path = std::string(rest.substr(slash));
  while (absl::EndsWith(address.path, "/")) address.path.pop_back();
  const absl::StatusOr<HostAndPort> authority = SplitHostAndPort(rest.substr(0, slash));
  if (!authority.ok()) {
    return BadAddress(url,
                      absl::StrCat("is no address of a server: ", authority.status().message()));
  }
  address.host = std::string(authority->host);
  if (authority->port.has_value()) address.port = std::string(*authority->port);
  if (!ParsePort(address.port).has_value())
    return BadAddress(url, "has a port that is no number from 1 to 65535");
  for (const char c : absl::StrCat(address.host, address.path)) {
    if (absl::ascii_isgraph(static_cast<unsigned char>(c)) && !absl::StrContains("@?#<>\"\\", c))
      continue;
    return BadAddress(url, "holds characters that the address of a server has not");
  }
  if (address.host.empty()) return BadAddress(url, "names no host");
  return address;
}

std::string HttpAddress::Authority() const {
  const bool is_v6 = absl::StrContains(host, ':');
  const std::string name = is_v6 ? absl::StrCat("[", host, "]") : host;
  return port == "80" ? name : absl::StrCat(name, ":", port);
}

absl::StatusOr<int> SendRequest(const HttpAddress& address, const ClientRequest& request,
                                absl::FunctionRef<void(int status, absl::string_view)> on_body,
                                const std::function<bool()>& cancel) {
  return OrOutOfMemory("this request", [&]() -> absl::StatusOr<int> {
    try {
      Exchange exchange(address, cancel);
      INLAY_RETURN_IF_ERROR(exchange.Connect(request.connect_timeout));
      INLAY_RETURN_IF_ERROR(exchange.Send(request));
      return exchange.Read(on_body);
    } catch (const boost::system::system_error& error) {  // no file descriptor, say
      return absl::UnavailableError(absl::StrCat("cannot connect: ", error.what()));
    }
  });
}

}  // namespace inlay::serve
