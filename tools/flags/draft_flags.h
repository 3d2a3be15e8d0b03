// The flags of speculative decoding, and what they result in.
#ifndef INLAY_TOOLS_FLAGS_DRAFT_FLAGS_H_
#define INLAY_TOOLS_FLAGS_DRAFT_FLAGS_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "CLI/App.hpp"
#include "absl/status/statusor.h"
#include "cache/kv_cache.h"
#include "gemma_like/generation/generation.h"
#include "gemma_like/load_model.h"
#include "tools/flags/model_flags.h"

namespace inlay {

struct DraftFlags {
  std::optional<size_t> tokens;
  size_t usual = 0;   // tokens, without flags
  std::string model;  // empty: drafts come from the text
};

// --draft and --draft-model. Without either `usual` tokens are drafted.
void AddDraftFlags(CLI::App& command, DraftFlags& flags, size_t usual);

// How many tokens are drafted at most.
size_t MostDrafted(const DraftFlags& flags);

// A model and, where the flags ask for one, the model that drafts for it with the same threads.
struct LoadedModels {
  LoadedModel model;
  std::optional<LoadedModel> draft_model;
};

// Both, loaded as LoadModel does. InvalidArgument for a draft model that embeds texts or has
// another vocabulary.
absl::StatusOr<LoadedModels> LoadModels(const DraftFlags& draft, ModelFlags flags,
                                        bool hash_weights = false);

// Has the answers of `options` drafted as the flags say, if by the draft model, which must outlive
// them, then for conversations as long as `cache` and in its memory.
absl::Status SetDrafts(const DraftFlags& draft, const ModelFlags& flags, const LoadedModels& models,
                       const KVCache& cache, GenerateOptions& options);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_DRAFT_FLAGS_H_
