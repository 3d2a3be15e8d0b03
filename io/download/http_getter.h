// Requests to a hub and to where it redirects them.
#ifndef INLAY_IO_DOWNLOAD_HTTP_GETTER_H_
#define INLAY_IO_DOWNLOAD_HTTP_GETTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "io/hub/environment.h"

namespace inlay {

// A reply without its body.
struct HttpReplyHead {
  int status = 0;
  std::map<std::string, std::string> headers;  // by name in lower case; the last of a name

  // Empty where there is none of this name, which is in lower case.
  absl::string_view Header(const std::string& name) const;
  bool succeeded() const { return status >= 200 && status < 300; }
  bool redirects() const;
};

struct HttpGet {
  std::string url;
  bool head_only = false;  // HEAD
  uint64_t offset = 0;     // asks for the bytes from here on
  absl::Duration time_limit = absl::InfiniteDuration();
  // Called with each reply before its body, the redirecting ones included. Its error ends the
  // request.
  std::function<absl::Status(const HttpReplyHead&)> on_head = {};
  // Called with the pieces of the body of a reply that succeeded. Likewise.
  std::function<absl::Status(absl::Span<const uint8_t>)> on_body = {};
};

// For one thread. libcurl does the work; its proxies are those of the environment (https_proxy,
// http_proxy, all_proxy, no_proxy).
//
// Only https is spoken, and http where the endpoint's own address is http. The endpoint's token is
// sent to the endpoint's scheme, host and port, and nowhere else, wherever a redirection leads.
// Certificates are checked against the system's, or against the file $SSL_CERT_FILE.
class HttpGetter {
 public:
  // InvalidArgument for an endpoint that is no address or that has a user's name in it;
  // Unimplemented where the system has no libcurl.
  static absl::StatusOr<std::unique_ptr<HttpGetter>> Create(const HubAccess& access);

  virtual ~HttpGetter() = default;

  // Sends the request and, of at most 10 redirections, those that follow; a HEAD is not sent
  // further than the endpoint. The last reply, whatever its status. Unavailable where the network
  // or the server fails (it may work later), FailedPrecondition for a certificate that does not
  // hold, InvalidArgument for an address that is refused.
  virtual absl::StatusOr<HttpReplyHead> Get(const HttpGet& request) = 0;
};

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_HTTP_GETTER_H_
