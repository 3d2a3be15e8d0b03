// Gemma 3, text: one full attention layer after every five sliding ones, norms of queries and keys.
#ifndef INLAY_CONFIGS_GEMMA3_H_
#define INLAY_CONFIGS_GEMMA3_H_

#include <optional>
#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Gemma3Shape {
  int vocab_size = 262'144;
  int model_dim = 0;
  int layers = 0;
  int heads = 0;
  int kv_heads = 0;
  int head_dim = 256;
  int hidden = 0;  // of the MLP
  int window = 0;
  int full_every = 6;    // layers full_every - 1, 2 * full_every - 1, ... are full
  int rope_scale = 1;    // of the full layers' positions
  int query_scalar = 0;  // query-key products are divided by its square root; 0: head_dim
};

template <Gemma3Shape kShape>
struct Gemma3 : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "gemma3";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-6f;
  static constexpr float kEmbeddingScale = static_cast<float>(ConstexprSqrt(kShape.model_dim));
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kGemma;
  static constexpr SamplingDefaults kSampling{.temperature = 1.0f, .top_k = 64, .top_p = 0.95f};

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = kShape.head_dim,
                                         .qk_norm = true,
                                         .query_scalar = kShape.query_scalar};
  // Ollama's files lack what all published checkpoints of a size have in common: the epsilon, the
  // bases and the scale of the positions (ollama/ollama, llama/compat).
  static constexpr std::optional<float> kAbsentNormEpsilon = kNormEpsilon;
  static constexpr AttentionKeys kAttentionKeys{
      .stores_scale = false, .absent_rope_base = 1'000'000, .absent_rope_scale = kShape.rope_scale};
  static constexpr Rope kSlidingRope{.base = 10'000};
  static constexpr Rope kFullRope{.base = 1'000'000, .scale = kShape.rope_scale};
  using Mlp = GatedMlp<kShape.hidden, Activation::kGeluTanh>;
  using Sliding = Layer<PreAndPostNorm,
                        Mixers<SlidingWindowAttention<kHeads, kSlidingRope, kShape.window>>, Mlp>;
  using Full = Layer<PreAndPostNorm, Mixers<FullAttention<kHeads, kFullRope>>, Mlp>;
  using Layers = Periodic<kShape.layers, kShape.full_every, Sliding, Full>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    v.Period("attention.sliding_window_pattern", kShape.layers, kShape.full_every, 6);
    // Ollama's files have Gemma 2's cap, which its program does not apply either.
    v.Float("final_logit_softcapping", Config::kLogitSoftCap, 0, 30);
  }
};

// huggingface.co/google/gemma-3-270m, config.json
struct Gemma3_270m : Gemma3<Gemma3Shape{.model_dim = 640,
                                        .layers = 18,
                                        .heads = 4,
                                        .kv_heads = 1,
                                        .hidden = 2048,
                                        .window = 512}> {
  static constexpr std::string_view kName = "gemma-3-270m";
};

// huggingface.co/google/gemma-3-1b-pt, config.json
struct Gemma3_1b : Gemma3<Gemma3Shape{.model_dim = 1152,
                                      .layers = 26,
                                      .heads = 4,
                                      .kv_heads = 1,
                                      .hidden = 6912,
                                      .window = 512}> {
  static constexpr std::string_view kName = "gemma-3-1b";
};

// huggingface.co/google/gemma-3-4b-pt, config.json (text_config). The larger models accept images
// too, and their vocabulary is padded with 64 rows for them, which some converters remove.
struct Gemma3_4b : Gemma3<Gemma3Shape{.model_dim = 2560,
                                      .layers = 34,
                                      .heads = 8,
                                      .kv_heads = 4,
                                      .hidden = 10'240,
                                      .window = 1024,
                                      .rope_scale = 8}> {
  static constexpr std::string_view kName = "gemma-3-4b";
};

// huggingface.co/google/gemma-3-12b-pt, config.json (text_config)
struct Gemma3_12b : Gemma3<Gemma3Shape{.model_dim = 3840,
                                       .layers = 48,
                                       .heads = 16,
                                       .kv_heads = 8,
                                       .hidden = 15'360,
                                       .window = 1024,
                                       .rope_scale = 8}> {
  static constexpr std::string_view kName = "gemma-3-12b";
};

// huggingface.co/google/gemma-3-27b-pt, config.json (text_config). Its query_pre_attn_scalar is
// model dim / heads.
struct Gemma3_27b : Gemma3<Gemma3Shape{.model_dim = 5376,
                                       .layers = 62,
                                       .heads = 32,
                                       .kv_heads = 16,
                                       .head_dim = 128,
                                       .hidden = 21'504,
                                       .window = 1024,
                                       .rope_scale = 8,
                                       .query_scalar = 5376 / 32}> {
  static constexpr std::string_view kName = "gemma-3-27b";
};

// 2.9 M parameters trained on the plays of Shakespeare: Bard's text in this family's shape.
struct BardGemma3 : Gemma3<Gemma3Shape{.vocab_size = 1024,
                                       .model_dim = 192,
                                       .layers = 6,
                                       .heads = 4,
                                       .kv_heads = 2,
                                       .head_dim = 64,
                                       .hidden = 512,
                                       .window = 64,
                                       .full_every = 3}> {
  static constexpr std::string_view kName = "bard-gemma3";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kNone;
  static constexpr SamplingDefaults kSampling{};
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_GEMMA3_H_
