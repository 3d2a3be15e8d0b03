// The kinds of layer parts that configs are made of. A new kind adds its header here, in
// cache/layers.h and in gemma_like/layers.h; see docs/add-a-layer-kind.md.
#ifndef INLAY_CONFIGS_LAYERS_H_
#define INLAY_CONFIGS_LAYERS_H_

// Keep sorted; one line for each kind.
#include "configs/layers/attention.h"
#include "configs/layers/delta_net.h"
#include "configs/layers/gated_input.h"
#include "configs/layers/gated_mlp.h"
#include "configs/layers/mamba2.h"
#include "configs/layers/moe_beside_mlp.h"
#include "configs/layers/moe_mlp.h"
#include "configs/layers/shared_kv_attention.h"
#include "configs/layers/short_conv.h"
#include "configs/layers/squared_relu_mlp.h"

#endif  // INLAY_CONFIGS_LAYERS_H_
