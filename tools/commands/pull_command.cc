// inlay pull: a model of a hub, by its name.
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "io/download/pull_model.h"
#include "io/hub/hub_name.h"
#include "nlohmann/json.hpp"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/flags/usage_error.h"
#include "tools/format.h"
#include "tools/json_text.h"
#include "tools/output.h"
#include "tools/pull.h"

namespace inlay {
namespace {

struct PullFlags {
  std::string name;
  bool json = false;
};

absl::Status RunPull(const PullFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const HubName name, AsUsageError(HubName::Parse(flags.name)));
  INLAY_ASSIGN_OR_RETURN(const PulledModel model, PullWithProgress(name));
  Output out;
  if (flags.json) {
    out.Write(JsonText({{"name", name.Id()},
                        {"type", model.type},
                        {"path", model.files.front()},
                        {"files", model.files},
                        {"bytes", model.bytes},
                        {"transferred_bytes", model.transferred}}));
    return out.Finish();
  }
  // The path alone is for scripts: inlay chat -m "$(inlay pull USER/REPO)".
  WriteNote(absl::StrCat(name.Id(), model.type.empty() ? "" : ":", model.type, ": ",
                         ByteCount(model.bytes), ", ",
                         model.transferred == 0 ? "here already" : "pulled", "\n"));
  out.Write(absl::StrCat(model.files.front(), "\n"));
  return out.Finish();
}

}  // namespace

void AddPull(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<PullFlags>();
  CLI::App& command = *app.add_subcommand(
      "pull", "Gets a model of Hugging Face into its cache, and prints where it is.");
  command
      .add_option("name", flags->name,
                  "USER/REPO, or USER/REPO:TYPE with a quantization (Q4_K_M) or a file's name, or "
                  "the address of its page on Hugging Face")
      ->required();
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return RunPull(*flags); }; });
}

}  // namespace inlay
