// Loads a model file with its vocabulary.
#ifndef INLAY_GEMMA_LIKE_LOAD_MODEL_H_
#define INLAY_GEMMA_LIKE_LOAD_MODEL_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gemma_like/engine.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

class GgufFile;

struct LoadedModel {
  std::shared_ptr<const GgufFile> file;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<Tokenizer> tokenizer;
  // What the file holds that the model is run without, for a note to the user: "439 tensors of
  // vision (v., mm.)"; most often "".
  std::string ignored;
  // Sentences on tensors that the model is run without or with others in their place: "there is no
  // output.weight, ..."; most often none.
  std::vector<std::string> notes;
};

// Opens a GGUF file, finds the built-in config that it was made for, and binds its weights and
// vocabulary. Errors name what is wrong with the file or which of its keys or tensors does not fit;
// ResourceExhausted, before its weights are allocated, when the model needs more memory than is
// available, and later if memory or threads run out nevertheless.
absl::StatusOr<LoadedModel> LoadModel(const std::string& path, const EngineOptions& options = {});

// The same, or how models are loaded instead of it.
using ModelLoader =
    std::function<absl::StatusOr<LoadedModel>(const std::string& path, const EngineOptions&)>;

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_LOAD_MODEL_H_
