// Mamba2: nothing but state space layers (Dao & Gu 2024).
#ifndef INLAY_CONFIGS_MAMBA2_H_
#define INLAY_CONFIGS_MAMBA2_H_

#include <string_view>

#include "configs/config.h"
#include "configs/metadata.h"

namespace inlay {

// What differs between the members of the family.
struct Mamba2FamilyShape {
  int vocab_size = 50'288;  // GPT-NeoX's 50277, padded to a multiple of 16
  int model_dim = 0;
  int layers = 0;
  int head_dim = 64;
  int state_dim = 128;
  int groups = 1;
};

template <Mamba2FamilyShape kShape>
struct Mamba2Family : ConfigDefaults {
  static constexpr std::string_view kArchitecture = "mamba2";
  static constexpr int kVocabSize = kShape.vocab_size;
  static constexpr int kModelDim = kShape.model_dim;
  static constexpr float kNormEpsilon = 1e-5f;

  static constexpr int kExpand = 2;  // inner size / model dim
  static constexpr Mamba2Shape kSsm{.heads = Quotient(kExpand * kShape.model_dim, kShape.head_dim),
                                    .head_dim = kShape.head_dim,
                                    .state_dim = kShape.state_dim,
                                    .groups = kShape.groups};
  using Layers = Repeat<kShape.layers, Layer<PreNorm, Mixers<Mamba2<kSsm>>>>;

  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
    // Its files state that it has neither attention nor an MLP.
    v.Int("attention.head_count", 0, 0);
    v.Int("feed_forward_length", 0, 0);
  }
};

// huggingface.co/state-spaces/mamba2-130m, config.json; the library's defaults for what it leaves
// out: head dim 64, state 128, one group, convolution 4.
struct Mamba2_130m : Mamba2Family<Mamba2FamilyShape{.model_dim = 768, .layers = 24}> {
  static constexpr std::string_view kName = "mamba2-130m";
};

// huggingface.co/state-spaces/mamba2-370m, config.json
struct Mamba2_370m : Mamba2Family<Mamba2FamilyShape{.model_dim = 1024, .layers = 48}> {
  static constexpr std::string_view kName = "mamba2-370m";
};

// huggingface.co/state-spaces/mamba2-780m, config.json
struct Mamba2_780m : Mamba2Family<Mamba2FamilyShape{.model_dim = 1536, .layers = 48}> {
  static constexpr std::string_view kName = "mamba2-780m";
};

// huggingface.co/state-spaces/mamba2-1.3b, config.json
struct Mamba2_1_3b : Mamba2Family<Mamba2FamilyShape{.model_dim = 2048, .layers = 48}> {
  static constexpr std::string_view kName = "mamba2-1.3b";
};

// huggingface.co/state-spaces/mamba2-2.7b, config.json
struct Mamba2_2_7b : Mamba2Family<Mamba2FamilyShape{.model_dim = 2560, .layers = 64}> {
  static constexpr std::string_view kName = "mamba2-2.7b";
};

// huggingface.co/mistralai/Mamba-Codestral-7B-v0.1, config.json. Its 7.28 billion weights confirm
// the size of the vocabulary.
struct MambaCodestral7b : Mamba2Family<Mamba2FamilyShape{
                              .vocab_size = 32'768, .model_dim = 4096, .layers = 64, .groups = 8}> {
  static constexpr std::string_view kName = "mamba-codestral-7b";
  static constexpr bool kTiedOutput = false;
};

}  // namespace inlay

#endif  // INLAY_CONFIGS_MAMBA2_H_
