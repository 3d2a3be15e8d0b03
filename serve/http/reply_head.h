// The lines before a reply's body.
#ifndef INLAY_SERVE_HTTP_REPLY_HEAD_H_
#define INLAY_SERVE_HTTP_REPLY_HEAD_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "serve/http/http_server.h"

namespace inlay::serve {

// What a reply takes from its request.
struct ReplyForm {
  bool http_1_1 = true;       // else the client knows no chunks
  bool without_body = false;  // HEAD
  bool keep_alive = true;
  std::string id;      // x-request-id and request-id
  std::string origin;  // of a page that may read the reply; "" for other clients
};

// Status line and headers, with the empty line. `length` is the body's, in bytes; without it the
// body is a stream: in chunks, or up to the connection's end. Headers that are no valid ones are
// left out.
std::string ReplyHead(const ReplyForm& form, int status, absl::string_view content_type,
                      const HttpHeaders& headers, std::optional<size_t> length);

// Whether a reply of this status may have a body.
bool MayHaveBody(int status);

inline constexpr absl::string_view kErrorType = "application/json";

// The body of an error that the server itself replies with.
std::string ErrorReplyBody(const HttpOptions& options, absl::string_view path, int status,
                           absl::string_view message);

}  // namespace inlay::serve

#endif  // INLAY_SERVE_HTTP_REPLY_HEAD_H_
