// What a program needs to load a model and generate text: the interface without the implementation.
//
// Headers to include separately where needed: snapshots of shared prefixes
// (gemma_like/generation/prefix_cache.h), conversations in stores (gemma_like/sessions/session.h),
// chats (gemma_like/sessions/chat_session.h), embeddings (gemma_like/embed.h), limits of memory
// (cache/block_pool.h, gemma_like/cache_limit.h), models by name (gemma_like/registry.h), packing
// (gemma_like/files/pack.h) and statically typed models (gemma_like/model/model.h).
#ifndef INLAY_GEMMA_LIKE_INLAY_H_
#define INLAY_GEMMA_LIKE_INLAY_H_

#include "cache/kv_cache.h"                    // IWYU pragma: export
#include "gemma_like/engine.h"                 // IWYU pragma: export
#include "gemma_like/generation/generate.h"    // IWYU pragma: export
#include "gemma_like/generation/generation.h"  // IWYU pragma: export
#include "gemma_like/generation/sampler.h"     // IWYU pragma: export
#include "gemma_like/load_model.h"             // IWYU pragma: export
#include "io/tokenizer/tokenizer.h"            // IWYU pragma: export

#endif  // INLAY_GEMMA_LIKE_INLAY_H_
