// Attention to the keys and values that an earlier layer stores: the config-only half.
#ifndef INLAY_CONFIGS_LAYERS_SHARED_KV_ATTENTION_H_
#define INLAY_CONFIGS_LAYERS_SHARED_KV_ATTENTION_H_

#include <string_view>

#include "configs/layer.h"
#include "configs/layers/attention.h"

namespace inlay {

template <class Owner>
struct SharedKvAttention;

// Has queries of its own for the keys and values of the last layer of the model with the mixer
// AttentionMixer<kShape, kRope, kWindow>, and stores nothing.
template <AttentionShape kShape, Rope kRope, int kWindow>
struct SharedKvAttention<AttentionMixer<kShape, kRope, kWindow>> : MixerPart {
  // The mixer whose storage it reads; see StorageLayer in configs/config.h.
  using StorageOwner = AttentionMixer<kShape, kRope, kWindow>;
  static constexpr std::string_view kName =
      StorageOwner::kSliding ? "swa of shared rows" : "attention to shared rows";

  static constexpr auto Numbers() { return StorageOwner::Numbers(); }

  static constexpr bool Check() {
    static_assert(!kShape.gated && !kShape.bidirectional,
                  "attention to shared keys and values is neither gated nor bidirectional");
    return StorageOwner::Check();
  }

  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor& v) {
    StorageOwner::template Metadata<Config>(v);
  }
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LAYERS_SHARED_KV_ATTENTION_H_
