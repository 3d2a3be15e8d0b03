// inlay limits: what this machine offers to the kernels.
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "io/status_macros.h"
#include "ops/cpu_target.h"
#include "tools/commands.h"
#include "tools/json_text.h"
#include "tools/model_flags.h"
#include "tools/output.h"

namespace inlay {
namespace {

absl::Status Run(bool json) {
  INLAY_RETURN_IF_ERROR(ApplyTarget());
  const std::vector<std::string> compiled = CompiledTargets();
  const std::vector<std::string> runnable = RunnableTargets();
  const std::string chosen = ChosenTarget();
  Output out;
  if (json) {
    out.Write(JsonText({{"targets",
                         {{"compiled", compiled}, {"runnable", runnable}, {"chosen", chosen}}}}));
  } else {
    out.Write(absl::StrCat("instruction sets compiled in  ", absl::StrJoin(compiled, " "),
                           "\nof these, this CPU runs       ", absl::StrJoin(runnable, " "),
                           "\nin use                        ", chosen, "\n"));
  }
  return out.Finish();
}

}  // namespace

void AddLimits(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App& command =
      *app.add_subcommand("limits", "Tells which instruction sets the kernels can use here.");
  AddFormatFlag(command, *json);
  command.callback([json, &action] { action = [json] { return Run(*json); }; });
}

}  // namespace inlay
