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

// Lets the model that is loaded next share its threads with the draft model, which the sandbox will
// let be read.
absl::Status ExpectDraftModel(const DraftFlags& draft, ModelFlags& flags);

// The draft model for `model`, both loaded with `flags`; none if there is no --draft-model.
// InvalidArgument if its vocabulary is another, and the errors of LoadModel.
absl::StatusOr<std::optional<LoadedModel>> LoadDraftModel(const DraftFlags& draft,
                                                          const ModelFlags& flags,
                                                          const LoadedModel& model);

// Has the answers of `options` drafted as the flags say, by `draft_model` if there is one, which
// must outlive them, for conversations as long as `cache` and in its memory.
absl::Status SetDrafts(const DraftFlags& draft, const ModelFlags& flags, const LoadedModel& model,
                       const std::optional<LoadedModel>& draft_model, const KVCache& cache,
                       GenerateOptions& options);

}  // namespace inlay

#endif  // INLAY_TOOLS_FLAGS_DRAFT_FLAGS_H_
