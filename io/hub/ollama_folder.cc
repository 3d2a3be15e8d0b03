#include "io/hub/ollama_folder.h"

#include <sys/stat.h>

#include <cstddef>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/types/span.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/hub/files_below.h"
#include "io/hub/hub_name.h"
#include "io/hub/small_file.h"
#include "io/json/parse_json.h"

namespace inlay {
namespace {

constexpr size_t kMostManifestBytes = size_t{1} << 20;
constexpr size_t kManifestDepth = 4;  // HOST/NAMESPACE/MODEL/TAG
constexpr absl::string_view kModelLayer = "application/vnd.ollama.image.model";

// The digest of the first layer with a model, in hexadecimal digits; empty where there is none.
std::string ModelDigest(const Json& manifest) {
  const Json& layers = JsonMember(manifest, "layers");
  if (!layers.is_array()) return "";
  for (const Json& layer : layers) {
    if (JsonString(JsonMember(layer, "mediaType")) != kModelLayer) continue;
    const std::string digest = JsonString(JsonMember(layer, "digest"));
    absl::string_view hex = digest;
    if (absl::ConsumePrefix(&hex, "sha256:") && IsHex(hex, 64)) return std::string(hex);
  }
  return "";
}

// The same of a manifest or, where it lists several, of the first that has one.
std::string ModelDigestOf(const Json& manifest) {
  std::string digest = ModelDigest(manifest);
  const Json& children = JsonMember(manifest, "manifests");
  if (!children.is_array()) return digest;
  for (size_t i = 0; digest.empty() && i < children.size(); ++i) digest = ModelDigest(children[i]);
  return digest;
}

std::string OllamaName(absl::Span<const absl::string_view> parts) {
  size_t from = 0;
  if (parts[0] == "registry.ollama.ai") from = parts[1] == "library" ? 2 : 1;
  return absl::StrCat(
      absl::StrJoin(parts.begin() + static_cast<ptrdiff_t>(from), parts.end() - 1, "/"), ":",
      parts.back());
}

absl::StatusOr<std::string> ModelFileOf(const std::string& folder, const std::string& manifest) {
  INLAY_ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(manifest, kMostManifestBytes));
  INLAY_ASSIGN_OR_RETURN(const JsonDocument json,
                         ParseJson(absl::StrCat("the manifest ", PrintableName(manifest)), text));
  const std::string digest = ModelDigestOf(*json);
  if (digest.empty()) {
    return absl::NotFoundError(
        absl::StrCat("its manifest ", PrintableName(manifest), " names no file in GGUF"));
  }
  std::string path = absl::StrCat(folder, "/blobs/sha256-", digest);
  struct stat info;
  if (stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode)) return path;
  return absl::NotFoundError(absl::StrCat("its file ", PrintableName(path), " is not there"));
}

}  // namespace

std::vector<LocalModel> ListOllamaModels(const std::string& folder) {
  std::vector<LocalModel> models;
  const std::string manifests = absl::StrCat(folder, "/manifests");
  for (const std::string& file : FilesBelow(manifests, kManifestDepth)) {
    const std::vector<absl::string_view> parts = absl::StrSplit(file, '/');
    if (parts.size() != kManifestDepth || parts.back().front() == '.') continue;
    LocalModel model = {"ollama", OllamaName(parts), "", ""};
    auto path = ModelFileOf(folder, absl::StrCat(manifests, "/", file));
    if (path.ok()) {
      model.path = *std::move(path);
    } else {
      model.problem = std::string(path.status().message());
    }
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace inlay
