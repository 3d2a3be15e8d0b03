// Conversations of the C API: creating, forking, rewinding, saving and loading them.
#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/about.h"
#include "base/status_macros.h"
#include "gemma_like/c_api/call.h"
#include "gemma_like/c_api/handles.h"
#include "gemma_like/c_api/options.h"
#include "gemma_like/c_api/watch.h"
#include "gemma_like/cache_limit.h"
#include "gemma_like/inlay_c.h"
#include "gemma_like/sessions/session.h"
#include "io/store/state_store_file.h"

namespace inlay::c_api {
namespace {

absl::StatusOr<std::unique_ptr<KVCache>> CreateFor(const LoadedModel& model,
                                                   const inlay_cache_options* given) {
  constexpr size_t kUsualLength = 4096;
  static_assert(kDefaultKvType == KvType::kF16);
  INLAY_ASSIGN_OR_RETURN(
      inlay_cache_options o,
      Complete("inlay_cache_options", given,
               {sizeof(inlay_cache_options), /*max_length=*/0, INLAY_ROWS_F16, /*limit_bytes=*/0}));
  INLAY_ASSIGN_OR_RETURN(const KvType type, RowTypeOf(o.row_type));
  if (o.max_length == 0) o.max_length = std::min(kUsualLength, model.engine->info().context_length);
  const CacheOptions options{.max_length = o.max_length};
  if (o.limit_bytes == 0) return model.engine->CreateCache(options, type);
  // One snapshot: where a prompt of several batches fails, the conversation goes back to it.
  return CreateCacheWithin(*model.engine, o.limit_bytes, options, type, /*snapshots=*/1);
}

inlay_cache* NewHandle(std::shared_ptr<SharedModel> model, std::unique_ptr<KVCache> cache) {
  auto conversation = std::make_shared<Conversation>(std::move(cache));
  return new inlay_cache{std::move(model), std::move(conversation)};
}

absl::StatusOr<size_t> BytesOf(absl::Span<const inlay_cache* const> caches) {
  std::set<const void*> seen;
  size_t sum = 0;
  for (const inlay_cache* cache : caches) {
    if (cache == nullptr) continue;
    // A conversation given twice is in use the second time, and has nothing new.
    if (!seen.insert(cache->conversation.get()).second) continue;
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    use.cache().VisitBlocks([&](const void* block, size_t bytes) {
      if (seen.insert(block).second) sum += bytes;
    });
  }
  return sum;
}

}  // namespace
}  // namespace inlay::c_api

using inlay::c_api::Call;
using inlay::c_api::CheckArray;
using inlay::c_api::CheckNotNull;
using inlay::c_api::Use;

inlay_status inlay_create_cache(const inlay_model* model, const inlay_cache_options* options,
                                inlay_cache** cache) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"model", model}, {"cache", cache}}));
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<inlay::KVCache> created,
                           inlay::c_api::CreateFor(model->shared->loaded(), options));
    *cache = inlay::c_api::NewHandle(model->shared, std::move(created));
    return absl::OkStatus();
  });
}

inlay_status inlay_fork_cache(const inlay_cache* cache, inlay_cache** fork) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"fork", fork}}));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    INLAY_ASSIGN_OR_RETURN(std::unique_ptr<inlay::KVCache> forked, use.cache().Fork());
    *fork = inlay::c_api::NewHandle(cache->shared, std::move(forked));
    return absl::OkStatus();
  });
}

void inlay_free_cache(inlay_cache* cache) { delete cache; }

size_t inlay_cache_length(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->conversation->cache->length();
}

size_t inlay_cache_max_length(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->conversation->cache->max_length();
}

size_t inlay_cache_rewind_floor(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->conversation->cache->RewindFloor();
}

size_t inlay_rewind_depth(const inlay_cache* cache) {
  return cache == nullptr ? 0 : cache->conversation->cache->rewind_depth();
}

const int32_t* inlay_cache_tokens(const inlay_cache* cache) {
  return cache == nullptr ? nullptr : cache->conversation->cache->tokens().data();
}

inlay_status inlay_copy_tokens(const inlay_cache* cache, int32_t* tokens, size_t capacity,
                               size_t* count) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"count", count}}));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    return inlay::c_api::CopyOut<int32_t>("tokens", use.cache().tokens(), tokens, capacity, count);
  });
}

inlay_status inlay_cache_bytes(const inlay_cache* const* caches, size_t count, size_t* bytes) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"bytes", bytes}}));
    INLAY_RETURN_IF_ERROR(CheckArray("caches", caches, count));
    INLAY_ASSIGN_OR_RETURN(*bytes, inlay::c_api::BytesOf({caches, count}));
    return absl::OkStatus();
  });
}

inlay_status inlay_rewind_cache(inlay_cache* cache, size_t length) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}}));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    return use.cache().Rewind(length);
  });
}

inlay_status inlay_trim_cache(inlay_cache* cache, size_t rewind) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}}));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    return use.cache().Trim(rewind);
  });
}

inlay_status inlay_save_cache(const inlay_cache* cache, const char* path) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"path", path}}));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    INLAY_ASSIGN_OR_RETURN(const auto writer,
                           inlay::WriteStateFile(path, inlay::FileKind::kSession));
    return inlay::SaveSession(cache->shared->engine(), use.cache(), *writer);
  });
}

inlay_status inlay_load_cache(inlay_cache* cache, const char* path, int exact, size_t* recomputed) {
  return Call([&]() -> absl::Status {
    INLAY_RETURN_IF_ERROR(CheckNotNull({{"cache", cache}, {"path", path}}));
    const std::shared_ptr<inlay::c_api::SharedModel> model = cache->shared;
    INLAY_RETURN_IF_ERROR(inlay::c_api::CheckNotAsking(*model));
    INLAY_ASSIGN_OR_RETURN(const Use use, Use::Of(cache->conversation));
    INLAY_ASSIGN_OR_RETURN(const auto reader, inlay::ReadStateFile(path));
    inlay::c_api::Watch watch(model.get());
    size_t again = 0;
    const inlay::LoadOptions options{
        .exact = exact != 0,
        .on_recompute = [&](absl::string_view, size_t tokens) { again = tokens; },
        .cancel = watch.Check()};
    const absl::Status status = inlay::LoadSession(model->engine(), *reader, use.cache(), options);
    if (status.ok() && recomputed != nullptr) *recomputed = again;
    return inlay::About(path, status);
  });
}
