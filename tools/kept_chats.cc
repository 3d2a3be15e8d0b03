#include "tools/kept_chats.h"

#include <unistd.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/status_macros.h"
#include "cache/model_identity.h"

namespace inlay {

absl::StatusOr<std::string> KeptChats::Prefix() {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity identity, engine_.Identity());
  return absl::StrCat("chat-", absl::Hex(identity.weights_hash, absl::kZeroPad16), "-");
}

absl::Status KeptChats::Keep(const ChatSession& session) {
  if (session.turns().empty()) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const std::string prefix, Prefix());
  const bool is_new = key_.empty();
  if (is_new) {
    key_ =
        absl::StrCat(prefix, absl::FormatTime("%Y%m%dT%H%M%E6S", absl::Now(), absl::UTCTimeZone()),
                     "-", getpid());
  }
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateWriter> writer, store_->Put(key_));
  INLAY_RETURN_IF_ERROR(session.Save(*writer, SavedPart::kTokens));
  if (!is_new) return absl::OkStatus();
  INLAY_ASSIGN_OR_RETURN(const std::vector<std::string> keys, store_->List(prefix));
  for (size_t i = 0; i + kMost < keys.size(); ++i) {
    // Another process may have deleted it since.
    const absl::Status status = store_->Delete(keys[i]);
    if (!absl::IsNotFound(status)) INLAY_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

absl::Status KeptChats::LoadNewest(ChatSession& session, const LoadOptions& options) {
  INLAY_ASSIGN_OR_RETURN(const std::string prefix, Prefix());
  INLAY_ASSIGN_OR_RETURN(const std::vector<std::string> keys, store_->List(prefix));
  if (keys.empty()) return absl::NotFoundError("no chat with this model has been kept");
  INLAY_ASSIGN_OR_RETURN(const std::unique_ptr<StateReader> reader, store_->Get(keys.back()));
  INLAY_RETURN_IF_ERROR(session.Load(*reader, options));
  key_ = keys.back();
  return absl::OkStatus();
}

}  // namespace inlay
