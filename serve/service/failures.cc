#include "serve/service/failures.h"

#include <cstddef>
#include <new>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/steady_time.h"
#include "base/unreadable_weights.h"
#include "serve/api/reply.h"

namespace inlay::serve {
namespace {

constexpr absl::Duration kBetweenNotes = absl::Minutes(1);
// Beyond them sentences are of one kind.
constexpr size_t kMostKinds = 64;

// A message without its numbers, which differ among errors of one kind.
std::string KindOf(int http_status, absl::string_view message) {
  std::string kind = absl::StrCat(http_status, " ");
  for (const char c : message) {
    if (!absl::ascii_isdigit(static_cast<unsigned char>(c))) kind += c;
  }
  return kind;
}

// Another server may be asked, as one that cannot be reached.
absl::Status UnreadableForClients() noexcept {
  try {
    return absl::UnavailableError("the server can no longer read its model");
  } catch (const std::bad_alloc&) {  // a code alone allocates nothing
    return absl::Status(absl::StatusCode::kUnavailable, "");
  }
}

}  // namespace

absl::Status Failures::ForClient(const absl::Status& status) noexcept {
  if (IsUnreadableWeights(status)) {
    const bool is_new = !weights_are_unreadable_.exchange(true);
    if (is_new && note_ != nullptr) {
      (void)OrOutOfMemory("a note", [&] {
        note_(absl::StrCat("every answer fails until the server is started again: ",
                           status.message()));
        return absl::OkStatus();
      });
    }
    return UnreadableForClients();
  }
  const int http_status = HttpStatusOf(status);
  if (!status.ok() && (http_status == 500 || IsOutOfMemory(status))) {
    (void)OrOutOfMemory("a note", [&] {
      Note(KindOf(http_status, status.message()),
           absl::StrCat("a request failed (", http_status, "): ", status.message()));
      return absl::OkStatus();
    });
  }
  return status;
}

void Failures::TellRefusal(int http_status, absl::string_view message) noexcept {
  if (http_status != 500 && http_status != 503) return;
  (void)OrOutOfMemory("a note", [&] {
    Note(KindOf(http_status, message),
         absl::StrCat("a request was refused (", http_status, "): ", message));
    return absl::OkStatus();
  });
}

absl::Status Failures::weights() const {
  return weights_are_unreadable_ ? UnreadableForClients() : absl::OkStatus();
}

void Failures::Note(const std::string& kind, absl::string_view sentence) {
  if (note_ == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    const absl::Time now = SteadyNow();
    absl::Time& next = next_[next_.size() < kMostKinds || next_.contains(kind) ? kind : ""];
    if (now < next) return;
    next = now + kBetweenNotes;
  }
  note_(sentence);
}

}  // namespace inlay::serve
