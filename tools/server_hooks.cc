#include "tools/server_hooks.h"

namespace inlay {

const ServerHooks* FindServerHooks() {
  static constexpr ServerHooks kHooks = {
      .add_commands =
          [](CLI::App& app, Action& action) {
            AddBatch(app, action);
            AddReplay(app, action);
            AddServe(app, action);
          },
      .connect = &ConnectToServer,
  };
  return &kHooks;
}

}  // namespace inlay
