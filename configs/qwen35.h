// Qwen3.5, 3.6 and 3.8: three gated delta nets to one gated full attention layer; dense, or with
// routed experts and a shared one in every layer.
#ifndef INLAY_CONFIGS_QWEN35_H_
#define INLAY_CONFIGS_QWEN35_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Qwen35Shape {
  int vocab_size = 248'320;
  int model_dim = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 256;
  int rotated = 64;  // elements of a head
  int key_heads = 16;
  int value_heads = 0;
  int delta_dim = 128;  // of the delta nets' heads
  int hidden = 0;       // of the MLP, or of one expert
  int experts = 0;      // 0: dense
  int used_experts = 0;
  int shared_hidden = 0;  // of the shared expert
  bool tied_output = false;
};

// Files name the norm before the MLP after the branch that it follows.
struct Qwen35Norms : PreNorm {
  static constexpr std::string_view kMlpNormTensor = "post_attention_norm.weight";
};

template <Qwen35Shape kShape>
struct Qwen35 : ConfigDefaults {
  static constexpr bool kHasExperts = kShape.experts > 0;
  static constexpr std::string_view kArchitecture = kHasExperts ? "qwen35moe" : "qwen35";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr bool kTiedOutput = kShape.tied_output;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = kShape.head_dim,
                                         .qk_norm = true,
                                         .gated = true};
  // full_attention_interval says which layers attend, so that one number of heads may stand for
  // all layers.
  static constexpr AttentionKeys kAttentionKeys{.kv_heads_elsewhere = kAnyValue};
  static constexpr Rope kRope{.base = 10'000'000, .dims = kShape.rotated};
  static constexpr DeltaNetShape kDelta{.key_heads = kShape.key_heads,
                                        .value_heads = kShape.value_heads,
                                        .head_dim = kShape.delta_dim};
  static constexpr MoeShape kExperts{.experts = kShape.experts,
                                     .used_experts = kShape.used_experts,
                                     .hidden = kShape.hidden,
                                     .shared_hidden = kShape.shared_hidden,
                                     .shared_gate = true};
  using Mlp = std::conditional_t<kHasExperts, MoeMlp<kExperts, Activation::kSilu>,
                                 GatedMlp<kShape.hidden, Activation::kSilu>>;
  using Attending = Layer<Qwen35Norms, Mixers<FullAttention<kHeads, kRope>>, Mlp>;
  using Recurrent = Layer<Qwen35Norms, Mixers<DeltaNet<kDelta>>, Mlp>;
  static constexpr int kInterval = 4;
  using Layers = Periodic<kShape.layers, kInterval, Recurrent, Attending>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Int("full_attention_interval", kInterval, kInterval);
    // The positions of images have three coordinates, to which angles belong in turn. Of a token
    // of text all are the same, but an angle beyond the sections would not turn at all.
    v.Sections("rope.dimension_sections", Sections());
    if constexpr (kHasExperts) {
      // Files may leave it to the shapes of their tensors.
      v.Int("expert_feed_forward_length", kShape.hidden, kShape.hidden);
      v.Flag("norm_top_k_prob", true, true);
    }
  }

  // How many angles belong to time, height, width and none of them, as all checkpoints have them.
  static constexpr std::array<int64_t, 4> Sections() {
    constexpr int kAngles = kShape.rotated / 2;
    constexpr int kTime = (kAngles + 2) / 3, kHeight = (kAngles + 1) / 3;
    return {kTime, kHeight, kAngles - kTime - kHeight, 0};
  }
};

// The numbers are those of the config.json of huggingface.co/Qwen/Qwen3.5-0.8B and its siblings.
// 3.6 and 3.8 have the shapes of 3.5 where a size is in both.
struct Qwen35_0_8b : Qwen35<Qwen35Shape{.model_dim = 1024,
                                        .layers = 24,
                                        .heads = 8,
                                        .kv_heads = 2,
                                        .value_heads = 16,
                                        .hidden = 3584,
                                        .tied_output = true}> {
  static constexpr std::string_view kName = "qwen3.5-0.8b";
};

struct Qwen35_2b : Qwen35<Qwen35Shape{.model_dim = 2048,
                                      .layers = 24,
                                      .heads = 8,
                                      .kv_heads = 2,
                                      .value_heads = 16,
                                      .hidden = 6144,
                                      .tied_output = true}> {
  static constexpr std::string_view kName = "qwen3.5-2b";
};

struct Qwen35_4b : Qwen35<Qwen35Shape{.model_dim = 2560,
                                      .layers = 32,
                                      .heads = 16,
                                      .kv_heads = 4,
                                      .value_heads = 32,
                                      .hidden = 9216,
                                      .tied_output = true}> {
  static constexpr std::string_view kName = "qwen3.5-4b";
};

struct Qwen35_9b : Qwen35<Qwen35Shape{.model_dim = 4096,
                                      .layers = 32,
                                      .heads = 16,
                                      .kv_heads = 4,
                                      .value_heads = 32,
                                      .hidden = 12'288}> {
  static constexpr std::string_view kName = "qwen3.5-9b";
};

struct Qwen35_27b : Qwen35<Qwen35Shape{.model_dim = 5120,
                                       .layers = 64,
                                       .heads = 24,
                                       .kv_heads = 4,
                                       .value_heads = 48,
                                       .hidden = 17'408}> {
  static constexpr std::string_view kName = "qwen3.5-27b";
};

struct Qwen35_35b_a3b : Qwen35<Qwen35Shape{.model_dim = 2048,
                                           .layers = 40,
                                           .heads = 16,
                                           .kv_heads = 2,
                                           .value_heads = 32,
                                           .hidden = 512,
                                           .experts = 256,
                                           .used_experts = 8,
                                           .shared_hidden = 512}> {
  static constexpr std::string_view kName = "qwen3.5-35b-a3b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_QWEN35_H_
