// What the environment says about hubs, and about the folders of users and of programs that keep
// models.
#ifndef INLAY_IO_HUB_ENVIRONMENT_H_
#define INLAY_IO_HUB_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// "~" or "~/..." with $HOME in its place, as shells and Python have it; any other path as it is.
std::string ExpandHome(absl::string_view path);

// The folder of Hugging Face's cache, as its own library finds it: $HF_HUB_CACHE, else
// $HUGGINGFACE_HUB_CACHE, $HF_HOME/hub, $XDG_CACHE_HOME/huggingface/hub or
// ~/.cache/huggingface/hub. NotFound where none of them and no $HOME is set.
absl::StatusOr<std::string> HubCacheFolder();

// How the hub is asked.
struct HubAccess {
  std::string endpoint = "https://huggingface.co";  // without a slash at the end
  std::string token;                                // empty: none
  bool offline = false;
};

// $HF_ENDPOINT; $HF_TOKEN, else $HUGGING_FACE_HUB_TOKEN, the file $HF_TOKEN_PATH or the file
// "token" beside the cache ($HF_HOME/token); $HF_HUB_OFFLINE (1, on, yes, true). InvalidArgument
// for an endpoint that is no http(s) URL and for a token that could not stand in a header.
absl::StatusOr<HubAccess> HubAccessFromEnvironment();

// Folders in which Ollama keeps manifests/ and blobs/: $OLLAMA_MODELS, else ~/.ollama/models and
// the folder of its system service.
std::vector<std::string> OllamaFolders();

// Folders in which LM Studio keeps USER/REPO/FILE.gguf: models/ in the folder that the file
// ~/.lmstudio-home-pointer names, in ~/.lmstudio and in ~/.cache/lm-studio.
std::vector<std::string> LmStudioFolders();

}  // namespace inlay

#endif  // INLAY_IO_HUB_ENVIRONMENT_H_
