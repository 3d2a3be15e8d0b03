// A config that is right, then one that differs from it by INLAY_FAULT, a declaration without its
// semicolon. See CMakeLists.txt.
#include <array>
#include <string_view>

#include "configs/config.h"
#include "configs/gemma3.h"
#include "configs/granite.h"

namespace inlay {

struct Right : ConfigDefaults {
  static constexpr std::string_view kName = "right";
  static constexpr std::string_view kArchitecture = "right";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
  static constexpr float kNormEpsilon = 1e-6f;
  using Attending =
      FullAttention<AttentionShape{.heads = 4, .kv_heads = 2, .head_dim = 2}, Rope{.base = 10'000}>;
  using Recurrent = Mamba2<Mamba2Shape{.heads = 4, .head_dim = 4, .state_dim = 8}>;
  using Layers = Chain<Layer<PreNorm, Mixers<Attending>, GatedMlp<16, Activation::kSilu>>,
                       Layer<PreNorm, Mixers<Recurrent>>>;
  template <class Config, class Visitor>
  static void Metadata(Visitor&) {}
};
static_assert(CheckConfig<Right>());

// Parts that lack something, for the faults: metadata, and kSize among the numbers.
struct NoMetadata : MlpPart {
  static constexpr std::string_view kName = "no metadata";
  static constexpr std::array<int, 0> Numbers() { return {}; }
  static constexpr bool Check() { return true; }
};
template <int kSize>
struct SameNumbers : MlpPart {
  static constexpr std::string_view kName = "same numbers";
  static constexpr std::array<int, 0> Numbers() { return {}; }
  static constexpr bool Check() { return true; }
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor&) {}
};

#if INLAY_COMPILE_FAIL
struct Wrong : Right {
  INLAY_FAULT;
};
static_assert(CheckConfig<Wrong>());
#endif

}  // namespace inlay
