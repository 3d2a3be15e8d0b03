// Two layers whose files would have to hold two values of one key.
#include <string_view>

#include "configs/metadata.h"

namespace inlay {

struct Tried : ConfigDefaults {
  static constexpr std::string_view kName = "tried";
  static constexpr std::string_view kArchitecture = "tried";
  static constexpr int kVocabSize = 16;
  static constexpr int kModelDim = 8;
  static constexpr float kNormEpsilon = 1e-6f;
  template <int kWindow>
  using Sliding =
      Layer<PreNorm,
            Mixers<SlidingWindowAttention<AttentionShape{.heads = 4, .kv_heads = 2, .head_dim = 2},
                                          Rope{}, kWindow>>>;
#if INLAY_COMPILE_FAIL
  using Layers = Chain<Sliding<16>, Sliding<32>>;
#else
  using Layers = Chain<Sliding<16>, Sliding<16>>;
#endif
  template <class Config, class Visitor>
  static void Metadata(Visitor& v) {
    CommonMetadata<Config>(v);
  }
};

struct Nothing {
  template <class... T>
  void Int(T...) {}
  template <class... T>
  void Float(T...) {}
  template <class... T>
  void Flag(T...) {}
  template <class... T>
  void Ints(T...) {}
  void VocabSize(int) {}
};

void Tell(Nothing& nothing) { Tried::Metadata<Tried>(nothing); }

}  // namespace inlay
