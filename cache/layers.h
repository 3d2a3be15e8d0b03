// The cache storage of every mixer kind; see configs/layers.h.
#ifndef INLAY_CACHE_LAYERS_H_
#define INLAY_CACHE_LAYERS_H_

// Keep sorted; one line for each kind that is a mixer.
#include "cache/layers/attention.h"
#include "cache/layers/delta_net.h"
#include "cache/layers/mamba2.h"
#include "cache/layers/shared_kv_attention.h"
#include "cache/layers/short_conv.h"

#endif  // INLAY_CACHE_LAYERS_H_
