#include "tools/hub_hooks.h"

#include "tools/pull.h"

namespace inlay {

const HubHooks* FindHubHooks() {
  static constexpr HubHooks kHooks = {.add_commands = &AddPull, .pull = &PullForCommand};
  return &kHooks;
}

}  // namespace inlay
