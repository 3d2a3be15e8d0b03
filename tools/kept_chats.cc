#include "tools/kept_chats.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/about.h"
#include "base/status_macros.h"
#include "cache/model_identity.h"

namespace inlay {
namespace {

constexpr absl::string_view kBeginning = "chat-";    // of a chat's name
constexpr char kTimeFormat[] = "%E4Y%m%dT%H%M%E6S";  // of UTC, in a chat's name

// When the chat of this name was kept; nothing where its name does not say.
std::optional<absl::Time> TimeOf(absl::string_view key) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '-');
  absl::Time time;
  if (parts.size() != 4 || !absl::ParseTime(kTimeFormat, parts[2], &time, nullptr))
    return std::nullopt;
  return time;
}

// The time for the name of what is kept now, beside these, ascending. A clock that is set back does
// not make it older than what was kept before.
absl::Time TimeAfter(const std::vector<std::string>& keys) {
  const absl::Time now = absl::Now();
  const std::optional<absl::Time> newest = keys.empty() ? std::nullopt : TimeOf(keys.back());
  return newest.has_value() ? std::max(now, *newest + absl::Microseconds(1)) : now;
}

}  // namespace

absl::StatusOr<std::string> KeptChats::Prefix() {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity identity, engine_.Identity());
  return absl::StrCat(kBeginning, absl::Hex(identity.weights_hash, absl::kZeroPad16), "-");
}

bool KeptChats::IsKept(absl::string_view key) {
  constexpr size_t kDigits = 16;
  if (!absl::ConsumePrefix(&key, kBeginning) || key.size() <= kDigits) return false;
  const absl::string_view hash = key.substr(0, kDigits);
  return key[kDigits] == '-' && std::all_of(hash.begin(), hash.end(), [](unsigned char c) {
           return absl::ascii_isxdigit(c);
         });
}

absl::Status KeptChats::Delete(const std::string& key) {
  const absl::Status status = store_->Delete(key);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

absl::Status KeptChats::Keep(const ChatSession& session) {
  if (session.turns().empty()) {
    const std::string before = std::exchange(key_, "");
    return before.empty() ? absl::OkStatus() : Delete(before);
  }
  INLAY_ASSIGN_OR_RETURN(const std::string prefix, Prefix());
  INLAY_ASSIGN_OR_RETURN(std::vector<std::string> keys, store_->List(prefix));
  const std::string key = absl::StrCat(
      prefix, absl::FormatTime(kTimeFormat, TimeAfter(keys), absl::UTCTimeZone()), "-", getpid());
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer, store_->Put(key));
  INLAY_RETURN_IF_ERROR(session.Save(*writer, SavedPart::kTokens));
  const std::string before = std::exchange(key_, key);
  // Only now: what is interrupted in between leaves the chat twice, not nowhere.
  if (!before.empty()) return before == key ? absl::OkStatus() : Delete(before);
  INLAY_ASSIGN_OR_RETURN(keys, store_->List(prefix));
  for (size_t i = 0; i + kMost < keys.size(); ++i) {
    if (keys[i] != key) INLAY_RETURN_IF_ERROR(Delete(keys[i]));
  }
  return absl::OkStatus();
}

absl::Status KeptChats::LoadNewest(ChatSession& session, const LoadOptions& options) {
  INLAY_ASSIGN_OR_RETURN(const std::vector<std::string> keys, List());
  if (keys.empty()) return absl::NotFoundError("no chat with this model has been kept");
  return Load(keys.front(), session, options);
}

absl::Status KeptChats::Load(const std::string& key, ChatSession& session,
                             const LoadOptions& options) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader, store_->Get(key));
  INLAY_RETURN_IF_ERROR(About(absl::StrCat("the kept chat ", key), session.Load(*reader, options)));
  key_ = key;
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> KeptChats::List() {
  INLAY_ASSIGN_OR_RETURN(const std::string prefix, Prefix());
  INLAY_ASSIGN_OR_RETURN(std::vector<std::string> keys, store_->List(prefix));
  std::reverse(keys.begin(), keys.end());
  return keys;
}

absl::StatusOr<KeptChats::Summary> KeptChats::Summarize(const std::string& key) {
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader, store_->Get(key));
  INLAY_ASSIGN_OR_RETURN(std::vector<ChatSession::Turn> turns, ChatSession::ReadTurns(*reader));
  Summary summary{.kept = "", .first_user = "", .turns = turns.size()};
  if (!turns.empty()) summary.first_user = std::move(turns.front().user);
  if (const std::optional<absl::Time> time = TimeOf(key))
    summary.kept = absl::FormatTime("%Y-%m-%d %H:%M", *time, absl::LocalTimeZone());
  return summary;
}

}  // namespace inlay
