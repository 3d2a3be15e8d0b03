// make_scripted_model SCRIPT TEMPLATE MODEL: writes a model file that follows a script, for
// clients' tests. SCRIPT is JSON as ParseModelScript reads it, TEMPLATE the chat template.
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "tests/gemma_like/scripted_model.h"

namespace inlay {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat(path, ": cannot be opened"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

absl::Status Run(const std::string& script_path, const std::string& template_path,
                 const std::string& model_path) {
  INLAY_ASSIGN_OR_RETURN(const std::string json, ReadFile(script_path));
  INLAY_ASSIGN_OR_RETURN(const std::string chat_template, ReadFile(template_path));
  INLAY_ASSIGN_OR_RETURN(const ModelScript script, ParseModelScript(json, chat_template));
  return WriteScriptedModel(script, model_path);
}

}  // namespace
}  // namespace inlay

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: make_scripted_model SCRIPT TEMPLATE MODEL\n");
    return 2;
  }
  const absl::Status status = inlay::Run(argv[1], argv[2], argv[3]);
  if (status.ok()) return 0;
  std::fprintf(stderr, "make_scripted_model: %s\n", status.ToString().c_str());
  return 1;
}
