// A config that is right, then one that differs from it by INLAY_FAULT, a declaration without its
// semicolon. See CMakeLists.txt.
#include <string_view>

#include "configs/config.h"

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

#if INLAY_COMPILE_FAIL
struct Wrong : Right {
  INLAY_FAULT;
};
static_assert(CheckConfig<Wrong>());
#endif

}  // namespace inlay
