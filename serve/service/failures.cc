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
    {
      const std::lock_guard lock(mutex_);
      unreadable_weights_.Update(status);  // the first one stays
    }
    const bool is_new = !weights_are_unreadable_.exchange(true);
    if (is_new)
      note_.Tell("every answer fails until the program is started again: ", status.message());
    return UnreadableForClients();
  }
  const int http_status = HttpStatusOf(status);
  const bool is_its_own = !status.ok() && (http_status == 500 || IsOutOfMemory(status));
  if (is_its_own && MayTell(http_status, status.message()))
    note_.Tell("a request failed (", http_status, "): ", status.message());
  return status;
}

void Failures::TellRefusal(int http_status, absl::string_view message) noexcept {
  const bool is_its_own = http_status == 500 || http_status == 503;
  if (is_its_own && MayTell(http_status, message))
    note_.Tell("a request was refused (", http_status, "): ", message);
}

absl::Status Failures::weights() const {
  return weights_are_unreadable_ ? UnreadableForClients() : absl::OkStatus();
}

absl::Status Failures::unreadable_weights() const {
  const std::lock_guard lock(mutex_);
  return unreadable_weights_;
}

bool Failures::MayTell(int http_status, absl::string_view message) noexcept {
  bool may = false;
  (void)OrOutOfMemory("a note", [&] {
    const std::string kind = KindOf(http_status, message);
    const std::lock_guard lock(mutex_);
    const absl::Time now = SteadyNow();
    absl::Time& next = next_[next_.size() < kMostKinds || next_.contains(kind) ? kind : ""];
    may = now >= next;
    if (may) next = now + kBetweenNotes;
    return absl::OkStatus();
  });
  return may;
}

}  // namespace inlay::serve
