#include "gemma_like/registry.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "gemma_like/model/companion_file.h"
#include "gemma_like/model/file_sampling.h"
#include "gemma_like/model/ignored.h"
#include "gemma_like/model/metadata_check.h"
#include "io/gguf/gguf.h"

namespace inlay {

namespace {

absl::Status UnknownArchitecture(const GgufFile& file, absl::string_view architecture) {
  // What hubs have beside the text models of the families that are built in.
  constexpr std::pair<absl::string_view, absl::string_view> kOthers[] = {
      {"lfm2-bidir", "it embeds texts with LFM2's layers, which is not built in"},
      {"nemotron_h_omni",
       "it is Ollama's file of a model that reads images, too; take a file of its text model"}};
  for (const auto& [name, what] : kOthers) {
    if (architecture == name)
      return absl::InvalidArgumentError(
          absl::StrCat(file.name(), " has architecture '", name, "': ", what));
  }
  std::vector<absl::string_view> known;
  for (const ConfigEntry& entry : ConfigEntries()) {
    if (std::find(known.begin(), known.end(), entry.architecture) == known.end())
      known.push_back(entry.architecture);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), " has architecture ", QuoteForMessage(architecture),
                   ", which is not one of those built in (", absl::StrJoin(known, ", "),
                   "); inlay configs lists the models"));
}

// Ollama's first files of EmbeddingGemma say that they are Gemma 3.
bool IsFirstEmbeddingGemma(const GgufFile& file, absl::string_view architecture) {
  return architecture == "gemma3" && file.FindTensor("dense.0.weight") != nullptr &&
         file.FindTensor("dense.1.weight") != nullptr;
}

// At most the first three.
absl::Status NoneFits(const GgufFile& file, std::vector<std::string> differences) {
  constexpr size_t kNamed = 3;
  std::string more;
  if (differences.size() > kNamed) {
    more = absl::StrCat(" (and ", differences.size() - kNamed, " more differ)");
    differences.resize(kNamed);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      file.name(), " fits no built-in config: ", absl::StrJoin(differences, "; "), more));
}

}  // namespace

absl::StatusOr<const ConfigEntry*> FindConfig(const GgufFile& file) {
  if (const std::string companion = DescribeCompanion(file); !companion.empty())
    return absl::InvalidArgumentError(absl::StrCat(file.name(), " ", companion));
  INLAY_ASSIGN_OR_RETURN(const absl::string_view architecture,
                         file.GetString("general.architecture"));
  std::optional<std::vector<std::string>> fewest;
  for (const ConfigEntry& entry : ConfigEntries()) {
    if (entry.architecture != architecture) continue;
    std::vector<std::string> differences = entry.compare(file).differences;
    if (differences.empty()) return &entry;
    if (!fewest.has_value() || differences.size() < fewest->size()) fewest = std::move(differences);
  }
  if (!fewest.has_value()) return UnknownArchitecture(file, architecture);
  if (IsFirstEmbeddingGemma(file, architecture)) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(),
        " is EmbeddingGemma in the form of Ollama's first files, which call it Gemma 3; "
        "take a file whose architecture is 'gemma-embedding'"));
  }
  return NoneFits(file, *std::move(fewest));
}

Ignored FindIgnored(const GgufFile& file, const ConfigEntry& config) {
  Ignored ignored = {.tensors = FindIgnoredTensors(file),
                     .keys = config.compare(file).ignored_keys};
  if (!config.sampling.has_value()) return ignored;
  for (std::string& key : ReadFileSampling(file, *config.sampling).ignored_keys)
    ignored.keys.push_back(std::move(key));
  return ignored;
}

absl::StatusOr<const ConfigEntry*> FindConfig(absl::string_view name) {
  std::vector<absl::string_view> names;
  for (const ConfigEntry& entry : ConfigEntries()) {
    if (entry.name == name) return &entry;
    names.push_back(entry.name);
  }
  return absl::NotFoundError(absl::StrCat("config ", QuoteForMessage(name),
                                          " is not one of those built in (",
                                          absl::StrJoin(names, ", "), ")"));
}

absl::StatusOr<std::unique_ptr<KVCache>> CreateKVCache(absl::string_view config_name,
                                                       const CacheOptions& options) {
  INLAY_ASSIGN_OR_RETURN(const ConfigEntry* entry, FindConfig(config_name));
  return entry->create_cache(options);
}

}  // namespace inlay
