// The configs compiled into this binary, and the choice among them by a file's metadata.
#ifndef INLAY_GEMMA_LIKE_REGISTRY_H_
#define INLAY_GEMMA_LIKE_REGISTRY_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "cache/cache_options.h"
#include "cache/kv_cache.h"
#include "configs/text_defaults.h"
#include "gemma_like/engine.h"
#include "gemma_like/files/packed_file.h"
#include "ops/attention/kv_type.h"

namespace inlay {

class GgufFile;
struct ConfigDescription;
struct Ignored;
struct MetadataFit;
struct ModelMemory;
struct PlannedWork;
struct RankShare;
struct SynthModel;

// One config, as functions that do not name its type.
struct ConfigEntry {
  absl::string_view name;
  absl::string_view architecture;
  std::optional<SamplingDefaults> sampling;  // none: it embeds texts
  MetadataFit (*compare)(const GgufFile& file);
  absl::StatusOr<std::unique_ptr<Engine>> (*load)(std::shared_ptr<const GgufFile> file,
                                                  const EngineOptions& options);
  absl::StatusOr<PackedTensors> (*packed_tensors)(const GgufFile& file);
  absl::StatusOr<std::unique_ptr<KVCache>> (*create_cache)(const CacheOptions& options);
  ConfigDescription (*describe)(KvType type);
  ModelMemory (*memory)(const GgufFile& file, const EngineOptions& options);
  // What a token costs one of the ranks that compute the model of the file, whose header alone is
  // read, once a conversation has `length` tokens.
  absl::StatusOr<PlannedWork> (*work)(const GgufFile& file, RankShare share, size_t length);
  SynthModel (*synth)();
  // "INLAY config: NAME\n", which is in the executable of each program that has this config, and in
  // no other.
  absl::string_view mark;
};

// All configs of this binary, in the order of the config list. Defined by the build from that list.
absl::Span<const ConfigEntry> ConfigEntries();

// The config that a file was made for. When none fits, the error names the keys that differ from
// the nearest one, which has the fewest, or the architectures known if the file's is not among
// them.
absl::StatusOr<const ConfigEntry*> FindConfig(const GgufFile& file);

// What of the file a model of this config is run without.
Ignored FindIgnored(const GgufFile& file, const ConfigEntry& config);

// The entry of this name. NotFound, with all names.
absl::StatusOr<const ConfigEntry*> FindConfig(absl::string_view name);

// An empty conversation for the config of this name. ResourceExhausted without memory.
absl::StatusOr<std::unique_ptr<KVCache>> CreateKVCache(absl::string_view config_name,
                                                       const CacheOptions& options = {});

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_REGISTRY_H_
