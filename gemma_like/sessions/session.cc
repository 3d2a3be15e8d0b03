#include "gemma_like/sessions/session.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "cache/cache_options.h"
#include "cache/model_identity.h"
#include "gemma_like/generation/generate.h"
#include "ops/views.h"

namespace inlay {
namespace {

absl::Status Recompute(Engine& engine, absl::Span<const int32_t> tokens, const LoadOptions& options,
                       KVCache& cache) {
  INLAY_ASSIGN_OR_RETURN(
      const std::unique_ptr<KVCache> computed,
      engine.CreateCache({.max_length = cache.max_length(), .pool = cache.shared_pool()},
                         cache.kv_type()));
  if (!tokens.empty()) {
    const FloatRows no_logits(nullptr, 0, engine.info().vocab_size);
    const CancelCheck check = [&] {
      if (options.progress) options.progress(computed->length(), tokens.size());
      return options.cancel && options.cancel();
    };
    INLAY_RETURN_IF_ERROR(Prefill(engine, *computed, tokens, no_logits, check));
  }
  return cache.Restore(std::move(*computed));
}

}  // namespace

absl::Status SaveSession(Engine& engine, const KVCache& cache, StateWriter& writer,
                         SavedPart part) {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity model, engine.Identity());
  INLAY_RETURN_IF_ERROR(part == SavedPart::kAll ? cache.Save(model, writer)
                                                : cache.SaveTokens(model, writer));
  return writer.Commit();
}

absl::Status AllowRecompute(const LoadOptions& options, absl::string_view why, size_t tokens) {
  if (options.exact) {
    return absl::FailedPreconditionError(
        absl::StrCat("the saved conversation would have to be computed again: ", why));
  }
  if (options.on_recompute) options.on_recompute(why, tokens);
  return absl::OkStatus();
}

absl::Status LoadSession(Engine& engine, ByteSource& reader, KVCache& cache,
                         const LoadOptions& options) {
  INLAY_ASSIGN_OR_RETURN(const ModelIdentity model, engine.Identity());
  INLAY_ASSIGN_OR_RETURN(const LoadOutcome outcome, cache.Load(model, reader));
  if (outcome.difference.empty()) return absl::OkStatus();
  INLAY_RETURN_IF_ERROR(AllowRecompute(options, outcome.difference, outcome.tokens.size()));
  return Recompute(engine, outcome.tokens, options, cache);
}

}  // namespace inlay
