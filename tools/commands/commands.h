// The subcommands of inlay: each adds its flags to the command line and says what to do.
#ifndef INLAY_TOOLS_COMMANDS_COMMANDS_H_
#define INLAY_TOOLS_COMMANDS_COMMANDS_H_

#include <functional>

#include "CLI/App.hpp"
#include "absl/status/status.h"

namespace inlay {

// Runs the command, once the command line is read. Its error becomes the one sentence on standard
// error.
using Action = std::function<absl::Status()>;

// Each adds one subcommand to `app`, which sets `action` when it is on the command line.
void AddBatch(CLI::App& app, Action& action);
void AddBench(CLI::App& app, Action& action);
void AddBundle(CLI::App& app, Action& action);
void AddChat(CLI::App& app, Action& action);
void AddCompletion(CLI::App& app, Action& action);
void AddConfigs(CLI::App& app, Action& action);
void AddEmbed(CLI::App& app, Action& action);
void AddGenerate(CLI::App& app, Action& action);
void AddInspect(CLI::App& app, Action& action);
void AddLicenses(CLI::App& app, Action& action);
void AddLimits(CLI::App& app, Action& action);
void AddList(CLI::App& app, Action& action);
void AddLogits(CLI::App& app, Action& action);
void AddManual(CLI::App& app, Action& action);
void AddPack(CLI::App& app, Action& action);
void AddPerplexity(CLI::App& app, Action& action);
void AddPlan(CLI::App& app, Action& action);
void AddPull(CLI::App& app, Action& action);
void AddQuantize(CLI::App& app, Action& action);
void AddReplay(CLI::App& app, Action& action);
void AddServe(CLI::App& app, Action& action);
void AddSynth(CLI::App& app, Action& action);
void AddTemplate(CLI::App& app, Action& action);
void AddTokenize(CLI::App& app, Action& action);

}  // namespace inlay

#endif  // INLAY_TOOLS_COMMANDS_COMMANDS_H_
