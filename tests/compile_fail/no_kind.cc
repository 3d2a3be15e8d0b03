// A part whose LayerKind nobody has included.
#include "configs/layer.h"
#include "gemma_like/model/weights.h"

namespace inlay {

struct Unknown : MlpPart {};

#if INLAY_COMPILE_FAIL
PartWeightsType<Unknown> weights;
#else
PartWeightsType<NoMlp> weights;
#endif

}  // namespace inlay
