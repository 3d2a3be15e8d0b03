#include "tools/flags/draft_flags.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
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
      ->type_name("FILE");
}

size_t MostDrafted(const DraftFlags& flags) {
  return flags.tokens.value_or(flags.model.empty() ? flags.usual : kUsualOfModel);
}

absl::Status ExpectDraftModel(const DraftFlags& draft, ModelFlags& flags) {
  if (draft.model.empty()) return absl::OkStatus();
  for (const std::string& path : GgufPaths(draft.model)) flags.readable.push_back(path);
  return OrOutOfMemory("the threads", [&] {
    flags.team = std::make_shared<Team>(flags.threads);
    return absl::OkStatus();
  });
}

absl::StatusOr<std::optional<LoadedModel>> LoadDraftModel(const DraftFlags& draft,
                                                          const ModelFlags& flags,
                                                          const LoadedModel& model) {
  if (draft.model.empty()) return std::nullopt;
  INLAY_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModelFile(flags, draft.model));
  const absl::Status same =
      CheckSameVocabulary(*model.engine, *model.tokenizer, *loaded.engine, *loaded.tokenizer);
  if (!same.ok()) {
    return absl::Status(same.code(),
                        absl::StrCat("--draft-model ", draft.model, " cannot draft for ",
                                     model.file->name(), ": ", same.message()));
  }
  return loaded;
}

absl::Status SetDrafts(const DraftFlags& draft, const ModelFlags& flags, const LoadedModel& model,
                       const std::optional<LoadedModel>& draft_model, const KVCache& cache,
                       GenerateOptions& options) {
  options.draft = MostDrafted(draft);
  if (!draft_model.has_value() || options.draft == 0) return absl::OkStatus();
  Engine& drafts = *draft_model->engine;
  const KvType type = CacheType(flags);
  if (const std::optional<size_t> limit = CacheLimit(flags); limit.has_value()) {
    const size_t needed = MostCacheBytes(*model.engine, type, cache.max_length(), 1) +
                          MostCacheBytes(drafts, type, cache.max_length(), 1);
    if (needed > *limit) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "a conversation of ", cache.max_length(), " tokens and that of the draft model need ",
          needed, " bytes, more than the limit of ", *limit,
          " (--cache-limit); a shorter context (-c) or a smaller --cache-type needs less"));
    }
  }
  INLAY_ASSIGN_OR_RETURN(
      options.drafter,
      ModelDrafter::Create(drafts, model.engine->info().vocab_size,
                           CostsOfDrafts(*model.engine, drafts),
                           {.max_length = cache.max_length(), .pool = cache.shared_pool()}, type));
  return absl::OkStatus();
}

}  // namespace inlay
