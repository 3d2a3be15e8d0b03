// The models that programs have put on this machine, and which of them a name means.
#ifndef INLAY_TOOLS_LOCAL_MODELS_H_
#define INLAY_TOOLS_LOCAL_MODELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "io/hub/local_model.h"

namespace inlay {

struct LocalModels {
  std::vector<LocalModel> models;
  std::vector<std::string> folders;  // that were looked into
};

// In the folders of Hugging Face, Ollama and LM Studio. What a source has twice under one name, as
// its folders may be links to each other, is there once.
LocalModels FindLocalModels();

// The path of the model that `name` means: of the file of this name; or of the only model in the
// folder of this name; or of the model that FindLocalModels() has under this name, or under this
// name with ":TYPE" behind it where there is one such alone (of Ollama's ":latest" goes before). A
// name that means nothing is returned as it is, for the error of opening it. InvalidArgument where
// it means several, which are named; NotFound for a folder without models, and where Hugging Face
// may have a model of this name.
absl::StatusOr<std::string> FindModelNamed(const std::string& name);

}  // namespace inlay

#endif  // INLAY_TOOLS_LOCAL_MODELS_H_
