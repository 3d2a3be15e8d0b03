// A chat with a model of this process.
#ifndef INLAY_TOOLS_LOCAL_CHAT_H_
#define INLAY_TOOLS_LOCAL_CHAT_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "gemma_like/load_model.h"
#include "gemma_like/sessions/chat_session.h"
#include "io/store/state_store.h"
#include "tools/chat_loop.h"
#include "tools/kept_chats.h"

namespace inlay {

struct LocalChatOptions {
  double temperature;  // of the session, for /temp to show
  bool exact = false;  // /load refuses a conversation that has to be computed again
  bool trims = false;  // the oldest turns are dropped where the context is full
  // What a person should know of the chat's format, as lines at the beginning; "": nothing.
  std::string format_note = "";
  bool goes_on = false;    // begins with the newest chat of `kept`, which is then not null
  std::string again = "";  // the command that goes on with the chat, for a person to type
  std::unique_ptr<KeptChats> kept = nullptr;    // where the chat is kept; null: nowhere
  std::shared_ptr<StateStore> store = nullptr;  // of /save and /load; null: they name files
};

// `model` must outlive the partner. The errors of KeptChats::LoadNewest for a chat that goes on;
// InterruptedError where Ctrl-C has ended that.
absl::StatusOr<std::unique_ptr<ChatPartner>> MakeLocalPartner(const LoadedModel& model,
                                                              ChatSession session,
                                                              LocalChatOptions options);

}  // namespace inlay

#endif  // INLAY_TOOLS_LOCAL_CHAT_H_
