// Requests to a server over HTTP, whose replies are read while they come.
#ifndef INLAY_SERVE_HTTP_HTTP_CLIENT_H_
#define INLAY_SERVE_HTTP_HTTP_CLIENT_H_

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// Where a server is: http://HOST[:PORT][/PATH].
struct HttpAddress {
  std::string host;  // a name or an address; one of IPv6 without brackets
  std::string port = "80";
  std::string
      path;  // "" or "/...": what comes before each request's own, without a slash at its end

  // InvalidArgument for another scheme than http (a sentence for https, which needs a proxy), and
  // for what is no address.
  static absl::StatusOr<HttpAddress> Parse(absl::string_view url);

  // "host:port", for messages and the header Host.
  std::string Authority() const;
};

struct ClientRequest {
  std::string method = "GET";
  std::string path;  // after the address's
  HttpHeaders headers = {};
  std::string body = {};
  absl::Duration connect_timeout = absl::Seconds(10);
};

// Sends the request over a connection of its own, and returns the status of the reply once it has
// been read. `on_body` gets each piece of its body with that status. `cancel` is asked many times a
// second; once it is true the connection is closed.
//
// Cancelled; Unavailable, naming the server, where nobody answers, or the connection ends before
// the reply does; ResourceExhausted without memory.
absl::StatusOr<int> SendRequest(const HttpAddress& address, const ClientRequest& request,
                                absl::FunctionRef<void(int status, absl::string_view)> on_body,
                                const std::function<bool()>& cancel);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_HTTP_CLIENT_H_
