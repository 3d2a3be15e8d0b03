// A config that does not say how its norms are computed.
#include <string_view>

#include "configs/config.h"

namespace inlay {

struct Tried : ConfigDefaults {
  static constexpr std::string_view kName = "config";
  static constexpr std::string_view kArchitecture = "config";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
#if !INLAY_COMPILE_FAIL
  static constexpr float kNormEpsilon = 1e-6f;
#endif
  using Layers = Repeat<
      2, Layer<PreNorm, Mixers<Mamba2<Mamba2Shape{.heads = 4, .head_dim = 4, .state_dim = 8}>>>>;
  template <class Config, class Visitor>
  static void Metadata(Visitor&) {}
};
static_assert(CheckConfig<Tried>());

}  // namespace inlay
