// Finds the model to use when none is named: the one inside the program, or the one that ships with
// the project.
#ifndef INLAY_TOOLS_DEMO_MODEL_H_
#define INLAY_TOOLS_DEMO_MODEL_H_

#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace inlay {

// The running program's file; empty if the system does not provide it.
std::filesystem::path RunningProgram();

// The path of the running program when a model is bundled with it. InvalidArgument when what is
// bundled is damaged, DataLoss when it is missing.
absl::StatusOr<std::optional<std::string>> FindBundledModel();

// From the folder of the running program upwards: models/bard.gguf, as in a source tree around a
// build folder, or share/inlay/models/bard.gguf, as installed. Nothing when there is neither.
std::optional<std::string> FindDemoModel();

// The same, from `folder` upwards.
std::optional<std::string> FindDemoModel(const std::filesystem::path& folder);

}  // namespace inlay

#endif  // INLAY_TOOLS_DEMO_MODEL_H_
