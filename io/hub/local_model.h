// A model that some program has put on this machine.
#ifndef INLAY_IO_HUB_LOCAL_MODEL_H_
#define INLAY_IO_HUB_LOCAL_MODEL_H_

#include <string>

#include "absl/strings/string_view.h"

namespace inlay {

struct LocalModel {
  absl::string_view source;  // "hub", "ollama" or "lm-studio"
  std::string name;          // "USER/REPO:Q4_K_M", "gemma3:1b"
  std::string path;          // of the file, or of the first part; empty where there is none
  std::string problem;       // why there is none, or why it cannot be used, as one sentence
};

}  // namespace inlay

#endif  // INLAY_IO_HUB_LOCAL_MODEL_H_
