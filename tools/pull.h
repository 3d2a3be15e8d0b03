// Gets models from a hub for commands, with a bar on a terminal.
#ifndef INLAY_TOOLS_PULL_H_
#define INLAY_TOOLS_PULL_H_

#include <string>

#include "absl/status/statusor.h"
#include "io/download/pull_model.h"
#include "io/hub/hub_name.h"

namespace inlay {

// PullModel with the environment's settings; notes and the bar go to standard error.
absl::StatusOr<PulledModel> PullWithProgress(const HubName& name);

// The path of the model of this name (-hf), pulled if it is not here; a line on standard error says
// what was transferred. A usage error where it is no name of a model. Only the first call for a
// name asks the hub: a command may load its model several times, the later ones in the sandbox.
absl::StatusOr<std::string> PullForCommand(const std::string& name);

}  // namespace inlay

#endif  // INLAY_TOOLS_PULL_H_
