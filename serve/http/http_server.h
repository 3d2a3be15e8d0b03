// An HTTP/1.1 server for local use: requests in whole, replies in whole or as a stream.
#ifndef INLAY_SERVE_HTTP_HTTP_SERVER_H_
#define INLAY_SERVE_HTTP_HTTP_SERVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace inlay::serve {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

class HeldBody;

struct HttpRequest {
  std::string method;  // "GET" (also for HEAD, whose reply goes out without its body), "POST",
                       // "PUT" or "DELETE"; the server itself replies to OPTIONS
  std::string path;    // "/v1/models", percent-decoded, valid UTF-8 without control characters,
                       // without "//", "/./" and "/../"; without the query
  std::string query;   // what follows the first '?', as sent
  HttpHeaders headers;
  std::string body;
  std::string id;  // the reply's x-request-id: the client's, or a random one
  // The body's part of HttpOptions::most_bodies, given back with the last copy.
  std::shared_ptr<HeldBody> held_body = nullptr;

  // The value of the first header of this name, in any case of letters; "" when there is none.
  absl::string_view Header(absl::string_view name) const;
};

// Why the server itself replies to a request with an error.
struct Refusal {
  int status = 400;
  std::string message;  // a sentence
};

// The reply to one request. Any thread may call it, at any time, also after the client or the
// server has gone: it then does nothing, and neither does what comes after the reply's end.
// Functions return at once; what they send is queued. A reply that is destroyed before it was sent
// becomes a 500, a stream that is destroyed before its end ends its connection.
class HttpReply {
 public:
  virtual ~HttpReply() = default;

  // The whole reply, whatever its size. Headers that are no valid ones are left out. The server
  // adds Cache-Control: no-store unless `headers` has another, and what concerns the connection.
  virtual void Send(int status, absl::string_view content_type, std::string body,
                    HttpHeaders headers = {}) = 0;

  // A reply of unknown length (chunked): its start, any number of pieces, its end.
  virtual void StartStream(int status, absl::string_view content_type,
                           HttpHeaders headers = {}) = 0;
  virtual void Write(std::string piece) = 0;
  virtual void Finish() = 0;

  // There is no memory to make the reply, or to go on with it. The server replies with 503 as soon
  // as it can; a stream ends its connection. This itself takes no memory.
  virtual void FailWithoutMemory() noexcept = 0;

  // Calls `gone` once, on one of the server's threads, if the client closes the connection or reads
  // too slowly (HttpOptions::most_queued, write_timeout) or the server is destroyed before the
  // reply was finished; at once, in the caller's thread, if that has happened already. A client
  // that shuts down only its sending side counts as gone. At most one call for each reply.
  virtual void OnGone(std::function<void()> gone) = 0;
};

// Called on one of the server's threads for each request that has passed the checks. It must not
// wait; the reply may be sent later.
using HttpHandler = std::function<void(HttpRequest request, std::shared_ptr<HttpReply> reply)>;

struct HttpOptions {
  std::string host = "127.0.0.1";  // an address, or a name of this machine
  uint16_t port = 0;               // 0: any free one
  size_t threads = 2;
  // Names, besides localhost, `host` itself and all addresses, that a request's Host may have
  // (against DNS rebinding), without port; "*": any.
  std::vector<std::string> allowed_hosts;
  // Origins of web pages that may send requests ("https://example.org"), besides the server's own;
  // "*": any. They get CORS headers; a request with any other Origin is refused with 403.
  std::vector<std::string> allowed_origins;
  size_t most_connections = 2048;         // see MakeRoomForConnections
  size_t most_header = size_t{16} << 10;  // bytes
  size_t most_body = size_t{32} << 20;
  // Of all requests together whose body is being received, or whose HttpRequest still exists: what
  // goes beyond is refused with 503 and Retry-After.
  size_t most_bodies = size_t{256} << 20;
  // Bytes that wait for a client that reads slowly: at the first Write that finds more waiting, the
  // client counts as gone.
  size_t most_queued = size_t{4} << 20;
  absl::Duration header_timeout =
      absl::Seconds(10);  // from the first byte, or the connection's start
  absl::Duration body_timeout = absl::Seconds(60);
  absl::Duration idle_timeout = absl::Seconds(75);   // between requests of one connection
  absl::Duration write_timeout = absl::Seconds(30);  // without a byte accepted by the client
  // Called on one of the server's threads with each request whose header has passed the checks,
  // while its body is still empty; whether one follows is `has_body`, of which the type has not
  // been checked. It must not wait. What it returns is the reply, and the body is not read. Null:
  // all are let in. Not called for an OPTIONS without a body: browsers send it before they send a
  // key.
  std::function<std::optional<Refusal>(const HttpRequest& request, bool has_body)> admit;
  // The body of an error that the server itself replies with (408, 413, 431, 403, ...), as JSON.
  std::function<std::string(absl::string_view path, int status, absl::string_view message)>
      error_body;
  // Told of each such error, on one of the server's threads and before it is sent, with the reply's
  // x-request-id: that of the handler's request where the error takes the place of its reply. The
  // path is "" where none was read. It must neither wait nor throw. May be null.
  std::function<void(absl::string_view id, absl::string_view path, int status,
                     absl::string_view message)>
      on_refusal;
};

class HttpServer {
 public:
  // Listens and serves from now on: on every address that the name `options.host` has on this
  // machine, all at the same port. The errors name the address: Unavailable when it is in use,
  // InvalidArgument when it is none of this machine's, PermissionDenied when the system forbids the
  // port, ResourceExhausted when memory or threads run out.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(HttpOptions options,
                                                           HttpHandler handler);
  // Closes all connections; what OnGone was given is called before this returns. Not to be called
  // on one of the server's threads.
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  virtual size_t connections() const = 0;

  // Accepts no more connections, closes idle ones, and ends each other connection after the reply
  // in progress. Returns once none is left, or after `most`.
  virtual void Drain(absl::Duration most) = 0;
};

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HTTP_SERVER_H_
