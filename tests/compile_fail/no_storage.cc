// A mixer without a cache half.
#include <array>
#include <string_view>

#include "cache/cache_plan.h"
#include "configs/config.h"

namespace inlay {

struct Forgetful : MixerPart {
  static constexpr std::string_view kName = "forgetful";
  static constexpr std::array<int, 0> Numbers() { return {}; }
  static constexpr bool Check() { return true; }
  template <class Config, class Visitor>
  static constexpr void Metadata(Visitor&) {}
};

struct Tried : ConfigDefaults {
  static constexpr std::string_view kName = "tried";
  static constexpr std::string_view kArchitecture = "tried";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
  static constexpr float kNormEpsilon = 1e-6f;
#if INLAY_COMPILE_FAIL
  using M = Forgetful;
#else
  using M = Mamba2<Mamba2Shape{.heads = 4, .head_dim = 4, .state_dim = 8}>;
#endif
  using Layers = Chain<Layer<PreNorm, Mixers<M>>>;
  template <class Config, class Visitor>
  static void Metadata(Visitor&) {}
};

int LastLayer() { return LastLayerWithStorage<Tried>(); }

}  // namespace inlay
