#include "gemma_like/registry.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "base/status_macros.h"
#include "io/gguf/gguf.h"

namespace inlay {

absl::StatusOr<const ConfigEntry*> FindConfig(const GgufFile& file) {
  const auto architecture = file.GetString("general.architecture");
  if (!architecture.ok()) return architecture.status();
  const ConfigEntry* nearest = nullptr;
  std::vector<std::string> nearest_differences;
  std::vector<absl::string_view> architectures;
  for (const ConfigEntry& entry : ConfigEntries()) {
    if (entry.architecture != *architecture) {
      if (std::find(architectures.begin(), architectures.end(), entry.architecture) ==
          architectures.end()) {
        architectures.push_back(entry.architecture);
      }
      continue;
    }
    std::vector<std::string> differences = entry.differences(file);
    if (differences.empty()) return &entry;
    if (nearest == nullptr || differences.size() < nearest_differences.size()) {
      nearest = &entry;
      nearest_differences = std::move(differences);
    }
  }
  if (nearest == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.name(), " has architecture ", QuoteForMessage(*architecture),
        ", which is not one of those built in (", absl::StrJoin(architectures, ", "), ")"));
  }
  std::string more;
  if (nearest_differences.size() > 1)
    more = absl::StrCat(" (and ", nearest_differences.size() - 1, " more differ)");
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), " fits no built-in config: ", nearest_differences.front(), more));
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
