// The use of a tensor, which decides how random values for it are drawn.
#ifndef INLAY_GEMMA_LIKE_MODEL_TENSOR_USE_H_
#define INLAY_GEMMA_LIKE_MODEL_TENSOR_USE_H_

namespace inlay {

// Each part of a layer states the use of its tensors. A branch is what a mixer or an MLP adds to
// the residual stream; its magnitude is proportional to the tensor at its end, which synth scales
// to keep random models stable.
enum class TensorUse {
  kMatrix,            // normal values with variance 1 / columns
  kEmbedding,         // likewise, looked up by row
  kLayerEmbedding,    // likewise, with a part of each row for every layer
  kRouter,            // likewise, of a mixture of experts
  kBranchEnd,         // likewise, at the end of a branch
  kBranchShare,       // likewise, at the end of a term that is added to another branch
  kNorm,              // 1 plus or minus 0.1
  kBranchNorm,        // likewise, at the end of a branch
  kPostNorm,          // likewise, of the norm after a branch
  kUndividedKeyNorm,  // likewise, of keys whose products with queries are not divided
  kBias,              // plus or minus 0.1
  kConvolution,       // plus or minus 0.5
  kDecayRate,         // -1 to -16: a of a state space layer
  kTimeStepBias,      // the inverse softplus of 0.001 to 0.1: its dt bias
};

// Whether it is a matrix, which files store in many types.
constexpr bool IsMatrix(TensorUse use) {
  switch (use) {
    case TensorUse::kMatrix:
    case TensorUse::kEmbedding:
    case TensorUse::kLayerEmbedding:
    case TensorUse::kRouter:
    case TensorUse::kBranchEnd:
    case TensorUse::kBranchShare:
      return true;
    default:
      return false;
  }
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_MODEL_TENSOR_USE_H_
