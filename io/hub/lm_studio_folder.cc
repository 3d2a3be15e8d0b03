#include "io/hub/lm_studio_folder.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "io/hub/choose_file.h"
#include "io/hub/files_below.h"

namespace inlay {
namespace {

constexpr size_t kLmStudioDepth = 4;  // USER/REPO/FILE, and a folder for parts

}  // namespace

std::vector<LocalModel> ListLmStudioModels(const std::string& folder) {
  std::vector<LocalModel> models;
  for (const std::string& file : FilesBelow(folder, kLmStudioDepth)) {
    const size_t user = file.find('/');
    const size_t repo = user == std::string::npos ? user : file.find('/', user + 1);
    if (repo == std::string::npos) continue;
    const auto type = ListedType(absl::string_view(file).substr(repo + 1));
    if (!type.has_value()) continue;
    models.push_back({"lm-studio", absl::StrCat(file.substr(0, repo), ":", *type),
                      absl::StrCat(folder, "/", file), ""});
  }
  return models;
}

}  // namespace inlay
