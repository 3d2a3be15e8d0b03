// The models that Ollama keeps: a manifest for each name, and files named by their hashes.
//
// FOLDER/manifests/HOST/NAMESPACE/MODEL/TAG is JSON: {"layers": [{"mediaType", "digest":
// "sha256:HEX", "size"}]}, and the layer of type application/vnd.ollama.image.model is the GGUF
// file FOLDER/blobs/sha256-HEX. A manifest may also list others, for several runners ("manifests").
#ifndef INLAY_IO_HUB_OLLAMA_FOLDER_H_
#define INLAY_IO_HUB_OLLAMA_FOLDER_H_

#include <string>
#include <vector>

#include "io/hub/local_model.h"

namespace inlay {

// By name, spelled as Ollama does: "gemma3:1b" for one of its library,
// "USER/MODEL:TAG" for one of another of its namespaces, "HOST/USER/MODEL:TAG" otherwise. Of a
// model without a GGUF file `problem` says so. A folder that is not there has none.
std::vector<LocalModel> ListOllamaModels(const std::string& folder);

}  // namespace inlay

#endif  // INLAY_IO_HUB_OLLAMA_FOLDER_H_
