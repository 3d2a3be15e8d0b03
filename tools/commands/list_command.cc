// inlay list: the models that are on this machine, and what becomes of them here.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/format.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/model/companion_file.h"
#include "gemma_like/registry.h"
#include "io/gguf/gguf.h"
#include "io/hub/local_model.h"
#include "tools/commands/commands.h"
#include "tools/flags/model_flags.h"
#include "tools/format.h"
#include "tools/inspection.h"
#include "tools/json_text.h"
#include "tools/local_models.h"
#include "tools/output.h"

namespace inlay {
namespace {

// A model and what this program makes of it.
struct ListedModel {
  LocalModel model;
  uint64_t bytes = 0;   // of its files
  std::string config;   // empty where none fits
  uint64_t memory = 0;  // bytes of weights, scratch and a conversation
  size_t context = 0;   // of that conversation, in tokens
  std::string problem;  // empty where it runs
  bool beside = false;  // it belongs to a model and is none
};

absl::Status Fit(const GgufFile& file, ListedModel& listed) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry, FindConfig(file));
  INLAY_RETURN_IF_ERROR(entry->packed_tensors(file).status());
  listed.config = std::string(entry->name);
  const MemoryPlan plan = MakePlan(ModelFlags(), file, *entry);
  listed.context = plan.context;
  listed.memory = plan.model.weights + plan.model.scratch + plan.description.cache.At(plan.context);
  return absl::OkStatus();
}

ListedModel Examine(LocalModel model) {
  ListedModel listed = {std::move(model), 0, "", 0, 0, "", false};
  listed.problem = listed.model.problem;
  if (listed.model.path.empty()) return listed;
  const auto file = GgufFile::Open(listed.model.path);
  absl::Status status = file.status();
  if (file.ok()) {
    listed.bytes = file->file_size();
    listed.beside = !DescribeCompanion(*file).empty();
    status = Fit(*file, listed);
  }
  if (!status.ok()) listed.problem = std::string(status.message());
  return listed;
}

nlohmann::ordered_json ListedJson(const ListedModel& listed) {
  nlohmann::ordered_json json = {{"source", std::string(listed.model.source)},
                                 {"name", listed.model.name},
                                 {"path", listed.model.path},
                                 {"file_bytes", listed.bytes}};
  if (listed.problem.empty()) {
    json["config"] = listed.config;
    json["context"] = listed.context;
    json["bytes_of_memory"] = listed.memory;
  } else {
    json["config"] = nullptr;
    json["error"] = listed.problem;
  }
  return json;
}

// Why it does not run, for where the path stands above.
std::string ProblemText(const ListedModel& listed) {
  absl::string_view problem = listed.problem;
  const std::string& path = listed.model.path;
  if (path.empty() || !absl::ConsumePrefix(&problem, absl::StrCat(path, " ")))
    return PrintableName(problem);
  return absl::StrCat("it ", PrintableName(problem));
}

std::string ListedText(const ListedModel& listed) {
  const bool runs = listed.problem.empty();
  std::string text =
      Format("%-10s %-52s %9s %9s  %s\n", listed.model.source, PrintableName(listed.model.name),
             listed.bytes == 0 ? "-" : ByteCount(listed.bytes),
             runs ? ByteCount(listed.memory) : "-", runs ? listed.config : "-");
  if (!listed.model.path.empty())
    AppendFormat(&text, "%-10s %s\n", "", PrintableName(listed.model.path));
  if (!runs) AppendFormat(&text, "%-10s does not run: %s\n", "", ProblemText(listed));
  return text;
}

absl::Status RunList(bool json) {
  LocalModels places = FindLocalModels();
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  std::string text =
      Format("%-10s %-52s %9s %9s  %s\n", "source", "name", "file", "memory", "config");
  bool any = false;
  for (LocalModel& model : places.models) {
    const ListedModel listed = Examine(std::move(model));
    if (listed.beside) continue;
    any = true;
    if (json) {
      list.push_back(ListedJson(listed));
    } else {
      text += ListedText(listed);
    }
  }
  if (!any) {
    text = absl::StrCat("no models in ", absl::StrJoin(places.folders, ", "), "\n");
  }
  Output out;
  out.Write(json ? JsonText(list) : text);
  return out.Finish();
}

}  // namespace

void AddList(CLI::App& app, Action& action) {
  const auto json = std::make_shared<bool>(false);
  CLI::App& command = *app.add_subcommand(
      "list",
      "Lists the models in the folders of Hugging Face, Ollama and LM Studio, and which run here.");
  AddFormatFlag(command, *json);
  command.callback([json, &action] { action = [json] { return RunList(*json); }; });
}

}  // namespace inlay
