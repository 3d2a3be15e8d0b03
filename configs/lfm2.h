// LFM2 and LFM2.5: gated short convolutions with a few full attention layers between them.
#ifndef INLAY_CONFIGS_LFM2_H_
#define INLAY_CONFIGS_LFM2_H_

#include <cstdint>
#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Lfm2Shape {
  int vocab_size = 65'536;
  int model_dim = 0;
  int layers = 16;
  uint64_t attention_layers = LayersAt(2, 5, 8, 10, 12, 14);  // a mask; the others are ShortConv
  int heads = 0;
  int kv_heads = 8;
  int hidden = 0;  // of the MLP, as files store it: config.json has the number before its rounding
};

template <Lfm2Shape kShape>
struct Lfm2 : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "lfm2";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;
  // The norm before the output matrix, despite its name; embeddings are not normalised.
  static constexpr std::string_view kOutputNormTensor = "token_embd_norm.weight";
  static constexpr ChatTemplate kChatTemplate = ChatTemplate::kChatMl;
  static constexpr SamplingDefaults kSampling{.temperature = 0.3f, .min_p = 0.15f};

  static constexpr AttentionShape kHeads{.heads = kShape.heads,
                                         .kv_heads = kShape.kv_heads,
                                         .head_dim = kShape.model_dim / kShape.heads,
                                         .qk_norm = true};
  static constexpr AttentionKeys kAttentionKeys{.stores_scale = false};
  static constexpr ShortConvShape kConv{.channels = kShape.model_dim};
  using Mlp = GatedMlp<kShape.hidden, Activation::kSilu>;
  using Attending = Layer<PreNorm, Mixers<FullAttention<kHeads, Rope{.base = 1'000'000}>>, Mlp>;
  using Convolving = Layer<PreNorm, Mixers<ShortConv<kConv>>, Mlp>;
  using Layers = Masked<kShape.layers, kShape.attention_layers, Attending, Convolving>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
  }
};

// The numbers are those of the published GGUF files: huggingface.co/LiquidAI/LFM2-350M-GGUF and its
// siblings. LFM2.5 has the shapes of LFM2 where a size is in both.
struct Lfm2_230m : Lfm2<Lfm2Shape{.model_dim = 1024,
                                  .layers = 14,
                                  .attention_layers = LayersAt(2, 4, 6, 8, 10, 12),
                                  .heads = 16,
                                  .hidden = 2560}> {
  static constexpr std::string_view kName = "lfm2.5-230m";
};

struct Lfm2_350m : Lfm2<Lfm2Shape{.model_dim = 1024, .heads = 16, .hidden = 4608}> {
  static constexpr std::string_view kName = "lfm2-350m";
};

struct Lfm2_700m : Lfm2<Lfm2Shape{.model_dim = 1536, .heads = 24, .hidden = 6912}> {
  static constexpr std::string_view kName = "lfm2-700m";
};

struct Lfm2_1_2b : Lfm2<Lfm2Shape{.model_dim = 2048, .heads = 32, .hidden = 8192}> {
  static constexpr std::string_view kName = "lfm2-1.2b";
};

struct Lfm2_2_6b : Lfm2<Lfm2Shape{.model_dim = 2048,
                                  .layers = 30,
                                  .attention_layers = LayersAt(2, 5, 9, 13, 17, 21, 24, 27),
                                  .heads = 32,
                                  .hidden = 10'752}> {
  static constexpr std::string_view kName = "lfm2-2.6b";
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_LFM2_H_
