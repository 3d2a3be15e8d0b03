// Any bytes as what a client sends: replied to or refused, and whatever reaches the handler is a
// request that keeps to the rules. The first byte says how many bytes arrive at a time.
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "serve/http/http_connection.h"
#include "serve/http/request_checks.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay::serve {
namespace {

// Small, so that short inputs reach the limits.
HttpOptions Options() {
  HttpOptions options;
  options.most_header = 300;
  options.most_body = 200;
  options.most_queued = 100;
  options.allowed_hosts = {"a.b"};
  options.allowed_origins = {"http://c.d"};
  return options;
}

void CheckRequestOfHandler(const HttpRequest& request) {
  constexpr std::array<absl::string_view, 4> kMethods = {"GET", "POST", "PUT", "DELETE"};
  INLAY_FUZZ_CHECK(std::find(kMethods.begin(), kMethods.end(), request.method) != kMethods.end());
  INLAY_FUZZ_CHECK(absl::StartsWith(request.path, "/") && IsValidUtf8(request.path));
  INLAY_FUZZ_CHECK(!absl::StrContains(request.path, "//"));
  for (const absl::string_view segment : absl::StrSplit(request.path, '/')) {
    INLAY_FUZZ_CHECK(segment != "." && segment != "..");
  }
  for (const unsigned char c : request.path) INLAY_FUZZ_CHECK(!absl::ascii_iscntrl(c));
  for (const unsigned char c : request.query) INLAY_FUZZ_CHECK(c > ' ' && c != 0x7F);
  for (const auto& [name, value] : request.headers) INLAY_FUZZ_CHECK(IsHeader(name, value));
  INLAY_FUZZ_CHECK(IsRequestId(request.id));
  // HTTP/1.0 needs none.
  INLAY_FUZZ_CHECK(request.Header("host").empty() ||
                   IsAllowedHost(request.Header("host"), Options()));
  INLAY_FUZZ_CHECK(request.body.size() <= Options().most_body);
  INLAY_FUZZ_CHECK(request.body.empty() || IsJson(request.Header("content-type")));
  INLAY_FUZZ_CHECK(request.Header("content-length").empty() ||
                   request.Header("transfer-encoding").empty());
}

// One connection over a pair of sockets, run by the caller's thread alone.
class OneConnection final : public ConnectionOwner {
 public:
  OneConnection() {
    int pair[2];
    INLAY_FUZZ_CHECK(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    client_ = pair[0];
    HttpSocket socket(context_.get_executor());
    socket.assign(boost::asio::ip::tcp::v4(), pair[1]);
    connection_ = std::make_shared<HttpConnection>(std::move(socket), this);
    const auto started = connection_;  // which may end at once
    started->Start();
  }
  ~OneConnection() { ::close(client_); }

  // What the client sends; false once the server has ended the connection.
  bool Send(absl::string_view bytes) {
    const ssize_t sent = ::send(client_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    Run();
    return sent == static_cast<ssize_t>(bytes.size());
  }
  // The client's end. The connection must not outlast it.
  void End() {
    ::shutdown(client_, SHUT_WR);
    Run();
    for (const auto& later : later_) later->Send(200, "text/plain", "late");
    later_.clear();
    Run();
    INLAY_FUZZ_CHECK(connection_ == nullptr);
  }
  const std::string& received() const { return received_; }

 private:
  const HttpOptions& options() const override { return options_; }
  const HttpHandler& handler() const override { return handler_; }
  bool draining() const override { return false; }
  const std::shared_ptr<std::atomic<size_t>>& body_bytes() const override { return body_bytes_; }
  void Remove(HttpConnection*) noexcept override { connection_.reset(); }

  // Does all that can be done without waiting.
  void Run() {
    std::array<char, 4096> buffer;
    for (ssize_t count = 1; count > 0;) {
      context_.restart();
      while (context_.poll() > 0) {
      }
      count = ::recv(client_, buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count > 0) received_.append(buffer.data(), count);
    }
  }

  void Handle(const HttpRequest& request, const std::shared_ptr<HttpReply>& reply) {
    CheckRequestOfHandler(request);
    reply->OnGone([this] { ++gone_; });
    if (absl::StartsWith(request.path, "/stream")) {
      reply->StartStream(200, "text/event-stream");
      for (const char c : request.path) reply->Write(std::string(1, c));
      reply->Finish();
    } else if (absl::StartsWith(request.path, "/later")) {
      later_.push_back(reply);
    } else if (absl::StartsWith(request.path, "/throw")) {
      throw std::bad_alloc();
    } else if (!absl::StartsWith(request.path, "/drop")) {
      reply->Send(200, "text/plain", request.body, {{"X-Path", request.path}});
    }
  }

  const HttpOptions options_ = Options();
  const std::shared_ptr<std::atomic<size_t>> body_bytes_ = std::make_shared<std::atomic<size_t>>(0);
  const HttpHandler handler_ = [this](const HttpRequest& request,
                                      const std::shared_ptr<HttpReply>& reply) {
    Handle(request, reply);
  };
  int gone_ = 0;
  std::string received_;
  std::vector<std::shared_ptr<HttpReply>> later_;
  boost::asio::io_context context_;
  int client_ = -1;
  std::shared_ptr<HttpConnection> connection_;
};

// The first reply's header: nothing that the client sent made a line of its own.
void CheckReplies(absl::string_view received) {
  if (received.empty()) return;
  const size_t end = received.find("\r\n\r\n");
  INLAY_FUZZ_CHECK(absl::StartsWith(received, "HTTP/1.1 ") && end != absl::string_view::npos);
  const std::vector<absl::string_view> lines = absl::StrSplit(received.substr(0, end), "\r\n");
  constexpr std::array<absl::string_view, 19> kNames = {"Content-Type",
                                                        "Cache-Control",
                                                        "X-Content-Type-Options",
                                                        "x-request-id",
                                                        "request-id",
                                                        "Date",
                                                        "Content-Length",
                                                        "Transfer-Encoding",
                                                        "Connection",
                                                        "Allow",
                                                        "Retry-After",
                                                        "X-Path",
                                                        "Vary",
                                                        "Access-Control-Allow-Origin",
                                                        "Access-Control-Expose-Headers",
                                                        "Access-Control-Allow-Methods",
                                                        "Access-Control-Allow-Headers",
                                                        "Access-Control-Allow-Private-Network",
                                                        "Access-Control-Max-Age"};
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<absl::string_view> parts = absl::StrSplit(lines[i], absl::MaxSplits(": ", 1));
    INLAY_FUZZ_CHECK(parts.size() == 2 && IsHeader(parts[0], parts[1]));
    INLAY_FUZZ_CHECK(std::find(kNames.begin(), kNames.end(), parts[0]) != kNames.end());
  }
}

void CheckPureFunctions(absl::string_view text) {
  if (const auto path = DecodePath(text)) {
    INLAY_FUZZ_CHECK(absl::StrContains(*path, '%') || absl::StrContains(*path, '#') ||
                     DecodePath(*path) == path);
  }
  IsHeaderList(text);
  IsRequestId(text);
  IsJson(text);
  IsAllowedHost(text, {});
  INLAY_FUZZ_CHECK(!IsAllowedOrigin(text, "localhost", {}) ||
                   absl::EndsWithIgnoreCase(
                       absl::StripSuffix(absl::StripSuffix(text, ":80"), ":443"), "//localhost"));
}

}  // namespace
}  // namespace inlay::serve

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  const size_t step = input.Byte() % 64;
  const std::string bytes = input.Rest();
  serve::CheckPureFunctions(bytes);
  serve::OneConnection connection;
  absl::string_view left = bytes;
  while (!left.empty()) {
    const absl::string_view piece = left.substr(0, step == 0 ? left.size() : step);
    left.remove_prefix(piece.size());
    if (!connection.Send(piece)) break;
  }
  connection.End();
  serve::CheckReplies(connection.received());
  return 0;
}
