#include "tools/local_models.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "io/hub/choose_file.h"
#include "io/hub/environment.h"
#include "io/hub/files_below.h"
#include "io/hub/hub_cache.h"
#include "io/hub/hub_name.h"
#include "io/hub/lm_studio_folder.h"
#include "io/hub/ollama_folder.h"
#include "tools/hub_hooks.h"

namespace inlay {
namespace {

void RemoveTwins(std::vector<LocalModel>& models) {
  std::set<std::string> seen;
  std::erase_if(models, [&](const LocalModel& model) {
    std::error_code ignored;
    const std::string file = std::filesystem::weakly_canonical(model.path, ignored).string();
    return !model.path.empty() &&
           !seen.insert(absl::StrCat(model.source, "\n", model.name, "\n", file)).second;
  });
}

// "A, B and 3 more"
std::string Listed(std::vector<std::string> names) {
  constexpr size_t kShown = 5;
  std::string more;
  if (names.size() > kShown) more = absl::StrCat(" and ", names.size() - kShown, " more");
  names.resize(std::min(names.size(), kShown));
  return absl::StrCat(absl::StrJoin(names, ", "), more);
}

absl::StatusOr<std::string> OnlyModelIn(const std::string& folder) {
  std::vector<std::string> models = FilesBelow(folder, /*depth=*/1);
  std::erase_if(models, [](const std::string& name) {
    return !absl::EndsWith(name, ".gguf") || !ListedType(name).has_value();
  });
  if (models.size() == 1) return (std::filesystem::path(folder) / models[0]).string();
  if (models.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder, " is a folder without a model, a file whose name ends in .gguf"));
  }
  const size_t count = models.size();
  return absl::InvalidArgumentError(absl::StrCat(folder, " is a folder with ", count,
                                                 " models: ", Listed(std::move(models)),
                                                 "; name one of these files"));
}

absl::StatusOr<std::string> FindListed(const std::string& name) {
  std::vector<LocalModel> models = FindLocalModels().models;
  const auto keep = [&](const auto& means) {
    if (std::any_of(models.begin(), models.end(), means))
      std::erase_if(models, [&](const LocalModel& model) { return !means(model); });
  };
  const std::string with_type = absl::StrCat(name, ":");
  std::erase_if(models, [&](const LocalModel& model) {
    return model.name != name && !absl::StartsWith(model.name, with_type);
  });
  keep([&](const LocalModel& model) { return !model.path.empty(); });
  keep([&](const LocalModel& model) { return model.name == absl::StrCat(name, ":latest"); });
  keep([&](const LocalModel& model) { return model.name == name; });
  if (models.size() > 1) {
    std::vector<std::string> found;
    for (const LocalModel& model : models)
      found.push_back(absl::StrCat(model.name, " (", model.path, ")"));
    const size_t count = found.size();
    return absl::InvalidArgumentError(absl::StrCat(
        name, " is the name of ", count, " models on this machine: ", Listed(std::move(found))));
  }
  if (models.size() == 1 && models[0].path.empty()) {
    return absl::NotFoundError(absl::StrCat(name, " cannot be used: ", models[0].problem));
  }
  if (models.size() == 1) return models[0].path;
  if (FindHubHooks() != nullptr && !absl::EndsWith(name, ".gguf") && HubName::Parse(name).ok()) {
    return absl::NotFoundError(absl::StrCat(
        name, " cannot be opened: No such file or directory, and none of inlay list; -hf ", name,
        " gets the model of this name from Hugging Face"));
  }
  return name;
}

}  // namespace

LocalModels FindLocalModels() {
  LocalModels found;
  const auto add = [&](const std::string& folder, std::vector<LocalModel> models) {
    found.folders.push_back(folder);
    for (LocalModel& model : models) found.models.push_back(std::move(model));
  };
  if (const auto folder = HubCacheFolder(); folder.ok()) add(*folder, HubCache(*folder).List());
  for (const std::string& folder : OllamaFolders()) add(folder, ListOllamaModels(folder));
  for (const std::string& folder : LmStudioFolders()) add(folder, ListLmStudioModels(folder));
  RemoveTwins(found.models);
  return found;
}

absl::StatusOr<std::string> FindModelNamed(const std::string& name) {
  // A command may load its model several times, the later ones in the sandbox.
  static auto& known = *new std::map<std::string, std::string>;
  if (const auto found = known.find(name); found != known.end()) return found->second;
  std::error_code ignored;
  const std::filesystem::file_status file = std::filesystem::status(name, ignored);
  std::string path = name;
  if (std::filesystem::is_directory(file)) {
    INLAY_ASSIGN_OR_RETURN(path, OnlyModelIn(name));
  } else if (file.type() == std::filesystem::file_type::not_found) {
    INLAY_ASSIGN_OR_RETURN(path, FindListed(name));
  }
  known.emplace(name, path);
  return path;
}

}  // namespace inlay
