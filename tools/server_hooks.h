// What of the command line needs the server's code, which a program can go without.
#ifndef INLAY_TOOLS_SERVER_HOOKS_H_
#define INLAY_TOOLS_SERVER_HOOKS_H_

#include <memory>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/chat_loop.h"
#include "tools/commands/commands.h"
#include "tools/server_chat.h"

namespace inlay {

struct ServerHooks {
  // Adds the commands that need it.
  void (*add_commands)(CLI::App& app, Action& action);
  // ConnectToServer
  absl::StatusOr<std::unique_ptr<ChatPartner>> (*connect)(ServerChatOptions options);
};

// Null in a program without the server. There are two definitions of this function:
// tools/server_hooks.cc, which alone refers to the server's code, and tools/no_server_hooks.cc. Who
// links the second, as inlay_add_model_binary() does, gets a program in which none of that code is.
const ServerHooks* FindServerHooks();

}  // namespace inlay

#endif  // INLAY_TOOLS_SERVER_HOOKS_H_
