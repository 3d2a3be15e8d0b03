// Everything that a program needs to load a model and talk to it.
#ifndef INLAY_GEMMA_LIKE_INLAY_H_
#define INLAY_GEMMA_LIKE_INLAY_H_

#include "cache/kv_cache.h"         // IWYU pragma: export
#include "gemma_like/engine.h"      // IWYU pragma: export
#include "gemma_like/generate.h"    // IWYU pragma: export
#include "gemma_like/load_model.h"  // IWYU pragma: export
#include "gemma_like/registry.h"    // IWYU pragma: export
#include "gemma_like/sampler.h"     // IWYU pragma: export
#include "io/tokenizer.h"           // IWYU pragma: export

#endif  // INLAY_GEMMA_LIKE_INLAY_H_
