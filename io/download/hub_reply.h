// What the replies of a hub mean.
#ifndef INLAY_IO_DOWNLOAD_HUB_REPLY_H_
#define INLAY_IO_DOWNLOAD_HUB_REPLY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "io/download/http_getter.h"

namespace inlay {

// Why a reply that did not succeed refuses `what` ("USER/REPO"), as one sentence that says what a
// person can do: PermissionDenied (401, 403), NotFound (404), Unavailable where it may pass
// (408, 425, 429, 5xx), else FailedPrecondition.
absl::Status RefusalOf(const HttpReplyHead& head, absl::string_view what,
                       absl::string_view endpoint, bool has_token);

// The tag in the value of a header etag: without its quotes and without the W/ of a weak one.
absl::string_view TagOf(absl::string_view etag);

// The hash in a reply's x-linked-etag, or else its etag; empty where it is none.
std::string HashOf(const HttpReplyHead& head);

// The size in a reply's x-linked-size, or else, where the reply succeeded, its content-length.
std::optional<uint64_t> SizeOf(const HttpReplyHead& head);

// How long a reply asks to wait: its header Retry-After, in seconds or as a date. Zero without one.
absl::Duration RetryAfter(const HttpReplyHead& head, absl::Time now);

}  // namespace inlay

#endif  // INLAY_IO_DOWNLOAD_HUB_REPLY_H_
