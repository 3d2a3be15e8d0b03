#include "io/download/hub_reply.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/printable.h"
#include "io/hub/hub_name.h"

namespace inlay {
namespace {

constexpr size_t kLongestHubMessage = 200;  // bytes that are repeated

// What the hub itself says of the error, in brackets.
std::string HubMessage(const HttpReplyHead& head) {
  const absl::string_view message = head.Header("x-error-message");
  if (message.empty()) return absl::StrCat(" (HTTP ", head.status, ")");
  return absl::StrCat(" (HTTP ", head.status, ": ",
                      PrintableName(message.substr(0, kLongestHubMessage)), ")");
}

// Whether the server may do later what it refuses now.
bool MayPass(int http_status) {
  return http_status == 408 || http_status == 425 || http_status == 429 || http_status >= 500;
}

}  // namespace

absl::Status RefusalOf(const HttpReplyHead& head, absl::string_view what,
                       absl::string_view endpoint, bool has_token) {
  const std::string says = HubMessage(head);
  if ((head.status == 401 || head.status == 403) && head.Header("x-error-code") == "GatedRepo") {
    return absl::PermissionDeniedError(absl::StrCat(
        what, " is gated: accept its conditions at ", PrintableName(endpoint), "/",
        what.substr(0, what.find(',')),
        has_token ? " as the user whose token is set" : " and set HF_TOKEN to a token of yours",
        says));
  }
  if (head.status == 401 || head.status == 403) {
    return absl::PermissionDeniedError(
        has_token ? absl::StrCat("the hub does not let the token's user read ", what, says)
                  : absl::StrCat("the hub has no ", what,
                                 " for everybody; if it is private, set HF_TOKEN", says));
  }
  if (head.status == 404) return absl::NotFoundError(absl::StrCat("the hub has no ", what, says));
  if (MayPass(head.status)) {
    return absl::UnavailableError(absl::StrCat(head.status == 429
                                                   ? "the hub has had too many requests from here"
                                                   : "the hub cannot reply at the moment",
                                               says));
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the hub refuses the request for ", what, says));
}

absl::string_view TagOf(absl::string_view etag) {
  absl::ConsumePrefix(&etag, "W/");
  absl::ConsumePrefix(&etag, "\"");
  absl::ConsumeSuffix(&etag, "\"");
  return etag;
}

std::string HashOf(const HttpReplyHead& head) {
  absl::string_view etag = head.Header("x-linked-etag");
  if (etag.empty()) etag = head.Header("etag");
  const absl::string_view tag = TagOf(etag);
  return IsHex(tag, 64) || IsHex(tag, 40) ? std::string(tag) : "";
}

std::optional<uint64_t> SizeOf(const HttpReplyHead& head) {
  uint64_t size = 0;
  if (absl::SimpleAtoi(head.Header("x-linked-size"), &size)) return size;
  if (head.succeeded() && absl::SimpleAtoi(head.Header("content-length"), &size)) return size;
  return std::nullopt;
}

absl::Duration RetryAfter(const HttpReplyHead& head, absl::Time now) {
  const absl::string_view text = head.Header("retry-after");
  uint32_t seconds = 0;
  if (absl::SimpleAtoi(text, &seconds)) return absl::Seconds(seconds);
  absl::Time date;
  std::string ignored;
  if (absl::ParseTime("%a, %d %b %Y %H:%M:%S GMT", text, &date, &ignored))
    return std::max(date - now, absl::ZeroDuration());
  return absl::ZeroDuration();
}

}  // namespace inlay
