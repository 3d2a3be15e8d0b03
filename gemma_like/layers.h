// The engine's halves of the kinds of layer parts; see configs/layers.h.
#ifndef INLAY_GEMMA_LIKE_LAYERS_H_
#define INLAY_GEMMA_LIKE_LAYERS_H_

// Keep sorted; one line for each kind.
#include "gemma_like/layers/attention.h"
#include "gemma_like/layers/delta_net.h"
#include "gemma_like/layers/gated_input.h"
#include "gemma_like/layers/gated_mlp.h"
#include "gemma_like/layers/mamba2.h"
#include "gemma_like/layers/moe_beside_mlp.h"
#include "gemma_like/layers/moe_mlp.h"
#include "gemma_like/layers/shared_kv_attention.h"
#include "gemma_like/layers/short_conv.h"
#include "gemma_like/layers/squared_relu_mlp.h"

#endif  // INLAY_GEMMA_LIKE_LAYERS_H_
