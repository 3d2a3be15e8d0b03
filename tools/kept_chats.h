// The chats that are kept without being asked for, so that a chat can be gone on with later.
#ifndef INLAY_TOOLS_KEPT_CHATS_H_
#define INLAY_TOOLS_KEPT_CHATS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/engine.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/store/state_store.h"

namespace inlay {

// Each chat is a state of its own in a store, named after the weights' hash and the time when it
// was kept last, so that the newest name is that of the chat that somebody was at last, even if the
// clock was set back since the others were kept; of one model the newest kMost are kept. Only
// tokens and texts are, a few kilobytes: the rest is computed again, exactly, when a chat goes on.
class KeptChats {
 public:
  static constexpr size_t kMost = 100;

  // Whether a state of this name is a chat that was kept so, of whichever model.
  static bool IsKept(absl::string_view key);

  // The engine must outlive the object.
  KeptChats(std::shared_ptr<StateStore> store, Engine& engine)
      : store_(std::move(store)), engine_(engine) {}

  // Stores the chat in the place of what this object has stored of it before. A chat without turns
  // is not stored, and what was stored of it is deleted.
  absl::Status Keep(const ChatSession& session);

  // The name of what is stored of the present chat, which each Keep changes; "": nothing is yet.
  const std::string& key() const { return key_; }

  // What Keep stores next is another chat.
  void BeginAnother() { key_.clear(); }

  // Replaces `session` by the newest chat of this model, which Keep then goes on to store. NotFound
  // where there is none; the errors of ChatSession::Load, which name the chat's state.
  absl::Status LoadNewest(ChatSession& session, const LoadOptions& options);

  // The same with a chat that List has named.
  absl::Status Load(const std::string& key, ChatSession& session, const LoadOptions& options);

  // The names of this model's chats, the newest first.
  absl::StatusOr<std::vector<std::string>> List();

  // What there is to see of a chat.
  struct Summary {
    std::string kept;        // when it was kept last, in local time; "" where its name does not say
    std::string first_user;  // the first message
    size_t turns;
  };
  // The errors of the store and of ChatSession::ReadTurns.
  absl::StatusOr<Summary> Summarize(const std::string& key);

 private:
  // What the names of this model's chats begin with.
  absl::StatusOr<std::string> Prefix();
  // Another process may have deleted the state before.
  absl::Status Delete(const std::string& key);

  std::shared_ptr<StateStore> store_;
  Engine& engine_;
  std::string key_;  // of the present chat; "": it is not stored yet
};

}  // namespace inlay

#endif  // INLAY_TOOLS_KEPT_CHATS_H_
