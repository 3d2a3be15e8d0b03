#include "serve/http/reply_head.h"

#include <boost/beast/http/status.hpp>
#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "nlohmann/json.hpp"
#include "serve/http/request_checks.h"

namespace inlay::serve {
namespace {

void AppendHeader(std::string& head, absl::string_view name, absl::string_view value) {
  absl::StrAppend(&head, name, ": ", value, "\r\n");
}

}  // namespace

bool MayHaveBody(int status) { return status >= 200 && status != 204 && status != 304; }

std::string ReplyHead(const ReplyForm& form, int status, absl::string_view content_type,
                      const HttpHeaders& headers, std::optional<size_t> length) {
  const auto reason =
      boost::beast::http::obsolete_reason(boost::beast::http::int_to_status(status));
  std::string head = absl::StrCat("HTTP/1.1 ", status, " ",
                                  absl::string_view(reason.data(), reason.size()), "\r\n");
  if (IsHeader("content-type", content_type)) AppendHeader(head, "Content-Type", content_type);
  bool has_cache_control = false;
  for (const auto& [name, value] : headers) {
    if (!IsHeader(name, value)) continue;
    has_cache_control = has_cache_control || absl::EqualsIgnoreCase(name, "cache-control");
    AppendHeader(head, name, value);
  }
  if (!has_cache_control) AppendHeader(head, "Cache-Control", "no-store");
  AppendHeader(head, "X-Content-Type-Options", "nosniff");
  AppendHeader(head, "x-request-id", form.id);
  AppendHeader(head, "request-id", form.id);  // as Anthropic's clients read it
  AppendHeader(head, "Date",
               absl::FormatTime("%a, %d %b %Y %H:%M:%S GMT", absl::Now(), absl::UTCTimeZone()));
  if (!form.origin.empty()) {
    AppendHeader(head, "Access-Control-Allow-Origin", form.origin);
    AppendHeader(head, "Access-Control-Expose-Headers", "*");
    AppendHeader(head, "Vary", "Origin");
  }
  if (MayHaveBody(status) && length.has_value()) {
    AppendHeader(head, "Content-Length", absl::StrCat(*length));
  } else if (MayHaveBody(status) && form.http_1_1) {
    AppendHeader(head, "Transfer-Encoding", "chunked");
  }
  AppendHeader(head, "Connection", form.keep_alive ? "keep-alive" : "close");
  head += "\r\n";
  return head;
}

std::string ErrorReplyBody(const HttpOptions& options, absl::string_view path, int status,
                           absl::string_view message) {
  if (options.error_body) return options.error_body(path, status, message);
  // A text only: the destructors of the library's objects and arrays take memory, and end the
  // process where there is none.
  const nlohmann::json text(std::string{message});
  return absl::StrCat("{\"error\":{\"message\":",
                      text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), "}}");
}

}  // namespace inlay::serve
