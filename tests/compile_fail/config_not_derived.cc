// A config that does not start from the defaults.
#include <string_view>

#include "configs/config.h"

namespace inlay {

#if INLAY_COMPILE_FAIL
struct Tried {
#else
struct Tried : ConfigDefaults {
#endif
  static constexpr std::string_view kName = "config";
  static constexpr std::string_view kArchitecture = "config";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
  static constexpr float kNormEpsilon = 1e-6f;
  using Layers = Repeat<
      2, Layer<PreNorm, Mixers<Mamba2<Mamba2Shape{.heads = 4, .head_dim = 4, .state_dim = 8}>>>>;
  template <class Config, class Visitor>
  static void Metadata(Visitor&) {}
};
static_assert(CheckConfig<Tried>());

}  // namespace inlay
