#include "tools/flags/draft_flags.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/plural.h"
#include "base/status_macros.h"
#include "cache/block_pool.h"
#include "gemma_like/cache_limit.h"
#include "gemma_like/generation/model_drafter.h"
#include "gemma_like/generation/speculate.h"
#include "io/gguf/gguf.h"
#include "io/gguf/gguf_split.h"
#include "ops/team.h"
#include "tools/flags/validators.h"

namespace inlay {
namespace {

// With a draft model: as far as its policy goes in most texts.
constexpr size_t kUsualOfModel = 8;

}  // namespace

void AddDraftFlags(CLI::App& command, DraftFlags& flags, size_t usual) {
  flags.usual = usual;
  command
      .add_option("--draft", flags.tokens,
                  absl::StrCat("tokens to draft at once, from the text or by --draft-model; the "
                               "answer is the same (default: ",
                               usual, ", with a draft model ", kUsualOfModel, "); 0: none"))
      ->check(Between(0, DraftedTokens::kMost));
  command
      .add_option("--draft-model", flags.model,
                  "a smaller model with the same vocabulary that drafts; the answer is the same")
      ->type_name("MODEL");
}

size_t MostDrafted(const DraftFlags& flags) {
  return flags.tokens.value_or(flags.model.empty() ? flags.usual : kUsualOfModel);
}

absl::StatusOr<LoadedModels> LoadModels(const DraftFlags& draft, ModelFlags flags,
                                        bool hash_weights) {
  LoadedModels models;
  if (draft.model.empty() || MostDrafted(draft) == 0) {
    INLAY_ASSIGN_OR_RETURN(models.model, LoadModel(flags, hash_weights));
    return models;
  }
  for (const std::string& path : GgufPaths(draft.model)) flags.readable.push_back(path);
  // The sandbox does not hold for threads that are there already.
  INLAY_ASSIGN_OR_RETURN(flags.model, FindModel(flags));
  INLAY_RETURN_IF_ERROR(OrOutOfMemory("the threads", [&] {
    flags.team = std::make_shared<Team>(flags.threads);
    return absl::OkStatus();
  }));
  INLAY_ASSIGN_OR_RETURN(models.model, LoadModel(flags, hash_weights));
  INLAY_ASSIGN_OR_RETURN(models.draft_model, LoadModelFile(flags, draft.model));
  const absl::Status can =
      CheckDraftModel(*models.model.engine, *models.model.tokenizer, *models.draft_model->engine,
                      *models.draft_model->tokenizer);
  if (can.ok()) return models;
  return absl::Status(can.code(), absl::StrCat("--draft-model ", draft.model, " cannot draft for ",
                                               models.model.file->name(), ": ", can.message()));
}

absl::Status SetDrafts(const DraftFlags& draft, const ModelFlags& flags, const LoadedModels& models,
                       const KVCache& cache, GenerateOptions& options) {
  options.draft = MostDrafted(draft);
  if (!models.draft_model.has_value()) return absl::OkStatus();
  const Engine& engine = *models.model.engine;
  Engine& drafts = *models.draft_model->engine;
  const KvType type = CacheType(flags);
  if (const std::optional<size_t> limit = CacheLimit(flags); limit.has_value()) {
    const size_t needed = MostCacheBytes(engine, type, cache.max_length(), 1) +
                          MostCacheBytes(drafts, type, cache.max_length(), 1);
    if (needed > *limit) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a conversation of ", Plural(cache.max_length(), "token"),
          " and that of the draft model need ", needed, " bytes, more than the limit of ", *limit,
          " (--cache-limit); a shorter context (-c) or a smaller --cache-type needs less"));
    }
  }
  INLAY_ASSIGN_OR_RETURN(
      options.drafter,
      ModelDrafter::Create(drafts, engine.info().vocab_size, CostsOfDrafts(engine, drafts),
                           {.max_length = cache.max_length(), .pool = cache.shared_pool()}, type));
  return absl::OkStatus();
}

}  // namespace inlay
