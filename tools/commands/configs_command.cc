// inlay configs: the models that this program can run.
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/format.h"
#include "gemma_like/model/description.h"
#include "gemma_like/registry.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/json_text.h"
#include "tools/output.h"

namespace inlay {
namespace {

absl::Status Run(bool json) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text = Format("%-28s %-16s %s\n", "config", "architecture", "layers");
  for (const ConfigEntry& entry : ConfigEntries()) {
    const size_t layers = entry.describe(KvType::kF32).layers.size();
    list.push_back({{"name", std::string(entry.name)},
                    {"architecture", std::string(entry.architecture)},
                    {"layers", layers}});
    AppendFormat(&text, "%-28s %-16s %6d\n", entry.name, entry.architecture, layers);
  }
  Output out;
  out.Write(json ? JsonText(list) : text);
  return out.Finish();
}

}  // namespace

void AddConfigs(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App& command = *app.add_subcommand("configs", "Lists the models that are built in.");
  AddFormatFlag(command, *json);
  command.callback([json, &action] { action = [json] { return Run(*json); }; });
}

}  // namespace inlay
