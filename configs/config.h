// What a model config must say, its defaults, and the checks that turn a wrong one into one
// sentence at compile time.
#ifndef INLAY_CONFIGS_CONFIG_H_
#define INLAY_CONFIGS_CONFIG_H_

#include <concepts>
#include <string_view>

#include "configs/layers.h"
#include "configs/pattern.h"

namespace inlay {

// Where RMSNorm stands around a mixer or MLP: before it, or also after it (before the residual
// addition).
enum class NormPlacement { kPre, kPreAndPost };

enum class TokenizerKind { kSentencePiece, kByteLevelBpe };

// How a conversation is written as one text.
enum class ChatTemplate { kNone, kGemma, kGranite };

// Sampling settings used where the user gives none. A temperature of 0 is greedy; top_k 0, top_p 1
// and min_p 0 are off.
struct SamplingDefaults {
  float temperature = 0.8f;
  int top_k = 40;
  float top_p = 0.95f;
  float min_p = 0.0f;
};

// A config is a struct derived from this one that defines
//   kName          how the registry and the command line call it
//   kArchitecture  the value of general.architecture in its files, and the prefix of their
//                  metadata keys
//   kVocabSize, kModelDim, kNormEpsilon
//   Layers         a LayerList: what Chain<...>, Repeat<n, ...> and Masked<...> make
//   Metadata(v)    the metadata keys that its files must agree with; see configs/metadata.h
// and redefines those of the members below in which it differs.
struct ConfigDefaults {
  static constexpr NormPlacement kNormPlacement = NormPlacement::kPre;
  static constexpr float kEmbeddingScale = 1.0f;    // embeddings are multiplied by it
  static constexpr float kResidualScale = 1.0f;     // so is a branch before the residual addition
  static constexpr float kAttentionScale = 1.0f;    // and query-key products
  static constexpr float kLogitDivisor = 1.0f;      // logits are divided by it
  static constexpr float kAttentionSoftCap = 0.0f;  // 0: none
  static constexpr float kLogitSoftCap = 0.0f;      // 0: none
  // The output matrix is the embedding, unless the file has its own.
  static constexpr bool kTiedOutput = true;
  static constexpr TokenizerKind kTokenizer = TokenizerKind::kSentencePiece;
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kNone;
  static constexpr SamplingDefaults kSampling{};
};

// Square root for constants (std::sqrt is not constexpr in C++20): Newton's iteration from above,
// which decreases until it has converged.
constexpr double ConstexprSqrt(double x) {
  double root = x > 1 ? x : 1;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2) root = next;
  return root;
}

namespace config_internal {
struct AnyVisitor;
}

template <class C>
concept ModelConfig = std::derived_from<C, ConfigDefaults> && requires {
  { C::kName } -> std::convertible_to<std::string_view>;
  { C::kArchitecture } -> std::convertible_to<std::string_view>;
  { C::kVocabSize } -> std::convertible_to<int>;
  { C::kModelDim } -> std::convertible_to<int>;
  { C::kNormEpsilon } -> std::convertible_to<float>;
  typename C::Layers;
  &C::template Metadata<config_internal::AnyVisitor>;
};

namespace config_internal {

template <class Mlp>
constexpr bool CheckMlp() {
  if constexpr (Mlp::kKind == MlpKind::kGated) {
    static_assert(Mlp::kHidden > 0, "the hidden size of a gated MLP must be positive");
  } else if constexpr (Mlp::kKind == MlpKind::kMoe) {
    static_assert(Mlp::kShape.hidden > 0, "the hidden size of an expert must be positive");
    static_assert(Mlp::kShape.used_experts >= 1 && Mlp::kShape.used_experts <= Mlp::kShape.experts,
                  "used_experts must be between 1 and experts");
    static_assert(Mlp::kShape.shared_hidden >= 0,
                  "the shared expert's hidden size must not be negative");
  }
  return true;
}

template <class Layer>
constexpr bool CheckLayer() {
  if constexpr (kIsAttention<Layer>) {
    constexpr AttentionShape kShape = Layer::kShape;
    static_assert(kShape.heads > 0 && kShape.kv_heads > 0 && kShape.head_dim > 0,
                  "heads, kv_heads and head_dim must be positive");
    static_assert(kShape.kv_heads <= 0 || kShape.heads % kShape.kv_heads == 0,
                  "heads must be a multiple of kv_heads");
    static_assert(Layer::kRope.base == 0 || kShape.head_dim % 2 == 0,
                  "head_dim must be even to be rotated");
    static_assert(Layer::kRope.base >= 0 && Layer::kRope.scale > 0,
                  "the rope base must not be negative and its scale must be positive");
    static_assert(Layer::kKind == LayerKind::kFullAttention || Layer::kWindow > 0,
                  "the window of a sliding-window layer must be positive");
  } else {
    constexpr Mamba2Shape kShape = Layer::kShape;
    static_assert(
        kShape.heads > 0 && kShape.head_dim > 0 && kShape.state_dim > 0 && kShape.groups > 0,
        "heads, head_dim, state_dim and groups must be positive");
    static_assert(kShape.groups <= 0 || kShape.heads % kShape.groups == 0,
                  "heads must be a multiple of groups");
    static_assert(kShape.conv_width >= 2, "conv_width must be at least 2");
  }
  return CheckMlp<typename Layer::Mlp>();
}

template <class List>
struct CheckLayers;
template <class... Layers>
struct CheckLayers<LayerList<Layers...>> {
  static constexpr bool kValid = (CheckLayer<Layers>() && ... && true);
};

}  // namespace config_internal

// True for a config whose numbers fit together; otherwise the compiler says in one sentence what
// does not.
template <class C>
constexpr bool CheckConfig() {
  static_assert(ModelConfig<C>,
                "a config must derive from ConfigDefaults and define kName, kArchitecture, "
                "kVocabSize, kModelDim, kNormEpsilon, Layers and Metadata");
  if constexpr (ModelConfig<C>) {
    static_assert(C::kVocabSize > 0 && C::kModelDim > 0,
                  "kVocabSize and kModelDim must be positive");
    static_assert(C::kNormEpsilon > 0, "kNormEpsilon must be positive");
    static_assert(C::Layers::kSize > 0, "a model must have at least one layer");
    static_assert(C::kLogitDivisor != 0, "kLogitDivisor must not be 0");
    return config_internal::CheckLayers<DistinctLayers<typename C::Layers>>::kValid;
  }
  return true;  // the sentence above is enough
}

}  // namespace inlay

#endif  // INLAY_CONFIGS_CONFIG_H_
