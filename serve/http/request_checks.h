// What a request must fulfil before it reaches the handler. Pure functions.
#ifndef INLAY_SERVE_HTTP_REQUEST_CHECKS_H_
#define INLAY_SERVE_HTTP_REQUEST_CHECKS_H_

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// The methods that a server lets in, as the header Allow lists them.
inline constexpr absl::string_view kAllowedMethods = "GET, HEAD, POST, PUT, DELETE, OPTIONS";

// A request whose header has arrived.
struct RequestHead {
  absl::string_view method;  // as sent
  absl::string_view target;  // as sent, or its OriginForm
  bool http_1_1 = true;      // else HTTP/1.0
  bool has_body = false;     // a Content-Length above 0, or chunks
  const HttpHeaders* headers = nullptr;
};

// The first rule that the request breaks, whatever its path and its body are.
std::optional<Refusal> CheckRequest(const RequestHead& head, const HttpOptions& options);

// The same of the headers that describe the body, where there is one.
std::optional<Refusal> CheckBody(const RequestHead& head);

// "/path?query" of "http://HOST/path?query", which every server must take (RFC 9112, 3.2.2), where
// HOST is the value of the Host header, which is checked. Any other target as it is.
absl::string_view OriginForm(absl::string_view target, absl::string_view host);

// The path of a target in origin form, percent-decoded, each run of '/' as one. None where there is
// a "." or ".." segment, a control character, a NUL, a fragment, a percent sign without two
// hexadecimal digits, or bytes that are not UTF-8. `target` is without the query.
std::optional<std::string> DecodePath(absl::string_view target);

// Whether a Host header's value, "name", "name:port", "address" or "[address]:port", may name this
// server. An address may be any, as only names can be made to lead here (DNS rebinding). Ports are
// not compared: they may have been forwarded.
bool IsAllowedHost(absl::string_view host, const HttpOptions& options);

// Whether a page of this origin may send requests to the server whose Host header is `host`.
bool IsAllowedOrigin(absl::string_view origin, absl::string_view host, const HttpOptions& options);

// Whether a Content-Type is application/json, whatever its parameters.
bool IsJson(absl::string_view content_type);

// Whether a client may give its request this id: [A-Za-z0-9._-]{1,128}.
bool IsRequestId(absl::string_view id);

// Whether `text` is a list of header names, as Access-Control-Request-Headers has it.
bool IsHeaderList(absl::string_view text);

// Whether a header of this name and value may be sent: no control characters, no empty name.
bool IsHeader(absl::string_view name, absl::string_view value);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_REQUEST_CHECKS_H_
