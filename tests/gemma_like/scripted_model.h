// Model files whose answers are known in advance, so that a whole chat can be tested, with thoughts
// and calls of tools, without a trained model.
#ifndef INLAY_TESTS_GEMMA_LIKE_SCRIPTED_MODEL_H_
#define INLAY_TESTS_GEMMA_LIKE_SCRIPTED_MODEL_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace inlay {

// After the token `start` the model writes the pieces, each of which is one token, and ends.
// Answers with the same start are equally likely.
struct ScriptedAnswer {
  std::string start;
  std::vector<std::string> pieces;
  bool endless = false;  // begins again after the last piece instead of ending
};

struct ModelScript {
  std::string chat_template;
  // Tokens that a text of a user cannot contain: markers of turns, of thoughts and of calls, and
  // the starts that only the chat template writes. Other starts are found in any text.
  std::vector<std::string> control_tokens;
  std::vector<ScriptedAnswer> answers;
};

// Reads {"control_tokens": ["a", ...], "answers": [{"start", "pieces", "endless"}, ...]}.
absl::StatusOr<ModelScript> ParseModelScript(absl::string_view json, std::string chat_template);

// Writes a model of the config TestLfm2 that follows the script: the next token depends on the last
// one alone. Texts that are in no script are encoded byte by byte; after such a byte the model
// ends its answer. InvalidArgument for a script with more pieces than the model has dimensions.
absl::Status WriteScriptedModel(const ModelScript& script, const std::string& path);

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_SCRIPTED_MODEL_H_
