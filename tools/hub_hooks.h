// What of the command line needs the code that gets models from a hub, which a program can go
// without.
#ifndef INLAY_TOOLS_HUB_HOOKS_H_
#define INLAY_TOOLS_HUB_HOOKS_H_

#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "tools/commands/commands.h"

namespace inlay {

struct HubHooks {
  // Adds the commands that need it.
  void (*add_commands)(CLI::App& app, Action& action);
  // PullForCommand
  absl::StatusOr<std::string> (*pull)(const std::string& name);
};

// Null in a program without that code. As with tools/server_hooks.h, there are two definitions:
// tools/hub_hooks.cc, which alone refers to the code, and tools/no_hub_hooks.cc, which a program of
// inlay_add_model_binary() links.
const HubHooks* FindHubHooks();

}  // namespace inlay

#endif  // INLAY_TOOLS_HUB_HOOKS_H_
