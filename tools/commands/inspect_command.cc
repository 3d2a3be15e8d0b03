// inlay inspect: what a model file holds and what running it needs.
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "gemma_like/model/file_sampling.h"
#include "gemma_like/model/metadata_check.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/inspection.h"
#include "tools/json_writer.h"
#include "tools/output.h"

namespace inlay {
namespace {

struct InspectFlags {
  ModelFlags model;
  bool json = false;
};

absl::Status Run(const InspectFlags& flags) {
  INLAY_ASSIGN_OR_RETURN(const std::string path, FindModel(flags.model));
  INLAY_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::Open(path));
  const auto entry = FindConfig(file);
  // Of the metadata, then of the tensors.
  const absl::Status fits = entry.ok() ? (*entry)->packed_tensors(file).status() : entry.status();
  Output out;
  if (flags.json) {
    JsonWriter json(out);
    json.BeginObject();
    WriteFile(file, json);
    const auto member = [&](absl::string_view key, const nlohmann::ordered_json& value) {
      json.Key(key);
      json.Value(value);
    };
    if (entry.ok()) {
      const MemoryPlan plan = MakePlan(flags.model, file, **entry);
      member("config", ConfigJson(**entry, plan));
      member("memory", MemoryJson(plan));
      if ((*entry)->sampling.has_value())
        member("sampling", SamplingJson(ReadFileSampling(file, *(*entry)->sampling).defaults));
      member("ignored", IgnoredJson(FindIgnored(file, **entry)));
      member("notes", (*entry)->compare(file).notes);
    } else {
      member("config", nullptr);
    }
    if (!fits.ok()) member("error", std::string(fits.message()));
    json.End();
  } else {
    WriteFile(file, out);
    if (entry.ok()) {
      out.Write(ConfigText(**entry, MakePlan(flags.model, file, **entry)));
      if ((*entry)->sampling.has_value())
        out.Write(SamplingText(ReadFileSampling(file, *(*entry)->sampling).defaults));
      out.Write(IgnoredText(FindIgnored(file, **entry)));
      out.Write(NotesText((*entry)->compare(file).notes));
    }
  }
  INLAY_RETURN_IF_ERROR(out.Finish());
  INLAY_RETURN_IF_ERROR(file.CheckWhole());  // else what was shown may be of two files
  return fits;
}

}  // namespace

void AddInspect(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App& command = *app.add_subcommand(
      "inspect", "Prints a model file's metadata, tensors, typed layers and memory plan.");
  AddModelArgument(command, AddModelFlag(command, flags->model), flags->model);
  AddCacheFlags(command, flags->model);
  AddFormatFlag(command, flags->json);
  command.callback([flags, &action] { action = [flags] { return Run(*flags); }; });
}

}  // namespace inlay
