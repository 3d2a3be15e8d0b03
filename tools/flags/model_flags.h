// The flags that say which model to load and how to run it, and what they result in.
#ifndef INLAY_TOOLS_FLAGS_MODEL_FLAGS_H_
#define INLAY_TOOLS_FLAGS_MODEL_FLAGS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "CLI/App.hpp"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cache/kv_cache.h"
#include "gemma_like/engine.h"
#include "gemma_like/load_model.h"
#include "ops/attention/kv_type.h"

namespace inlay {

class Team;

struct ModelFlags {
  std::string model;                  // empty: FindModel chooses
  std::string hub;                    // the name of a model on a hub, instead; empty: none
  CLI::Option* hub_option = nullptr;  // --hf-repo, where there is one
  size_t threads = 1;
  std::shared_ptr<Team> team = nullptr;  // of these threads, where two models share them
  bool check_tensors = false;
  bool sandbox = false;
  bool serves = false;                // the command accepts connections, in the sandbox too
  std::vector<std::string> readable;  // files that it reads later
  // Whether the command embeds texts instead of using logits; none: whatever the model does.
  std::optional<bool> embeds = false;
  std::optional<size_t> context;  // tokens; 0: the trained length
  std::string cache_type{KvTypeName(kDefaultKvType)};
  std::optional<size_t> cache_limit;  // MiB
};

// -m, --hf-repo and --sandbox. Returns -m.
CLI::Option* AddModelFlag(CLI::App& command, ModelFlags& flags);
// The model file without -m, for commands whose arguments can be nothing else. `flag` is their -m.
void AddModelArgument(CLI::App& command, CLI::Option* flag, ModelFlags& flags);
// -t
void AddThreadsFlag(CLI::App& command, ModelFlags& flags);
// -t, one or several
void AddThreadsListFlag(CLI::App& command, std::vector<size_t>& threads);
// -m, -t and --check-tensors. Returns -m.
CLI::Option* AddEngineFlags(CLI::App& command, ModelFlags& flags);
// --cache-type
void AddCacheTypeFlag(CLI::App& command, ModelFlags& flags);
// --cache-limit
void AddCacheLimitFlag(CLI::App& command, ModelFlags& flags);
// -c and --cache-type
void AddCacheFlags(CLI::App& command, ModelFlags& flags);
// -o text|json
void AddFormatFlag(CLI::App& command, bool& json);

// The model's path: that of -m (a file, or what FindModelNamed makes of it), or of --hf-repo's
// model, which is pulled, or the program's own when a model is bundled with it, or $INLAY_MODEL, or
// the demo model. With --sandbox, only this file can be opened after the call; see tools/sandbox.h.
absl::StatusOr<std::string> FindModel(const ModelFlags& flags);

// The instruction set that $INLAY_TARGET names; empty where it is not set.
std::string ForcedTarget();

// Makes the kernels use that instruction set, if one is named. FailedPrecondition if this CPU runs
// none of the program's.
absl::Status ApplyTarget();

// The model that the flags ask for, ready to run; see EngineOptions::hash_weights. What of the file
// is ignored, and which tensors it lacks, is noted on standard error the first time.
// FailedPrecondition for one that embeds texts in a command that needs logits, or the other way
// round.
absl::StatusOr<LoadedModel> LoadModel(const ModelFlags& flags, bool hash_weights = false);

// Likewise, the model in that file, whatever it is for.
absl::StatusOr<LoadedModel> LoadModelFile(const ModelFlags& flags, const std::string& path,
                                          bool hash_weights = false);

// The row type: --cache-type.
KvType CacheType(const ModelFlags& flags);

// The longest conversation in tokens: -c; without it the trained length, but at most 4096 so that
// memory stays modest.
size_t ContextSize(const ModelFlags& flags, size_t trained);

// --cache-limit in bytes.
std::optional<size_t> CacheLimit(const ModelFlags& flags);

// An empty conversation as the flags ask for, whose pool has the limit of --cache-limit.
// ResourceExhausted, before anything is allocated, when by the plan a conversation of max_length
// tokens, an open append and `snapshots` snapshots may need more.
absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const ModelFlags& flags, const Engine& engine,
                                                     size_t max_length, size_t snapshots = 0);
// The same with the length that -c asks for.
absl::StatusOr<std::unique_ptr<KVCache>> CreateCache(const ModelFlags& flags, const Engine& engine);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_MODEL_FLAGS_H_
