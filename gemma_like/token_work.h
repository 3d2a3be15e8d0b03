// How much a model has to read and compute for a token, to hold speeds against the machine's
// limits.
#ifndef INLAY_GEMMA_LIKE_TOKEN_WORK_H_
#define INLAY_GEMMA_LIKE_TOKEN_WORK_H_

#include <algorithm>
#include <cstddef>

#include "cache/hybrid_cache.h"
#include "configs/config.h"
#include "configs/layers.h"
#include "configs/pattern.h"
#include "gemma_like/weights.h"
#include "ops/packed_matrix.h"

namespace inlay {

// Of one matrix or several: bytes of weights, and operations per token, a multiplication and an
// addition counting as two.
struct TokenWork {
  double bytes = 0;
  double ops = 0;

  TokenWork& operator+=(const TokenWork& other) {
    bytes += other.bytes;
    ops += other.ops;
    return *this;
  }
};

inline TokenWork WorkOf(const PackedMatrix& w) {
  return {static_cast<double>(w.bytes()),
          2.0 * static_cast<double>(w.rows()) * static_cast<double>(w.cols())};
}

inline TokenWork WorkOf(const GatedMlpWeights& w) {
  TokenWork work = WorkOf(w.gate);
  work += WorkOf(w.up);
  work += WorkOf(w.down);
  return work;
}

// The matrices that one token of this layer is multiplied with; of experts only the chosen ones.
template <class Layer>
TokenWork WorkOfLayer(const LayerWeights<Layer>& w) {
  TokenWork work;
  if constexpr (kIsAttention<Layer>) {
    for (const PackedMatrix* m : {&w.mixer.q, &w.mixer.k, &w.mixer.v, &w.mixer.output})
      work += WorkOf(*m);
  } else {
    work += WorkOf(w.mixer.in);
    work += WorkOf(w.mixer.out);
  }
  if constexpr (Layer::Mlp::kKind == MlpKind::kGated) work += WorkOf(w.mlp);
  if constexpr (Layer::Mlp::kKind == MlpKind::kMoe) {
    work += WorkOf(w.mlp.router);
    for (int i = 0; i < Layer::Mlp::kShape.used_experts; ++i) work += WorkOf(w.mlp.experts.front());
    if constexpr (Layer::Mlp::kShape.shared_hidden > 0) work += WorkOf(w.mlp.shared);
  }
  return work;
}

// Bytes of its cache that a layer reads for the token after `length` others, rows stored as Policy
// says.
template <class Layer, class Policy>
constexpr size_t CacheBytesRead(size_t length) {
  if constexpr (kIsAttention<Layer>) {
    constexpr size_t kWindow = Layer::kWindow;
    const size_t rows = kWindow == 0 ? length + 1 : std::min(length + 1, kWindow);
    return rows * (KvShapeOf<Layer, Policy>().BlockBytes() / kKvBlockRows);
  } else {
    constexpr SsdShape kShape = SsdShapeOf<Layer>();
    // The state, and half a chunk of x and B on average.
    return (kShape.StateElements() + kSsdChunk / 2 * (kShape.Inner() + kShape.BcDim())) *
           sizeof(float);
  }
}

template <ModelConfig Config, class Policy = F32Storage>
constexpr size_t ConfigCacheBytesRead(size_t length) {
  size_t bytes = 0;
  ForEachLayer<Config>([&]<class Layer>(int) { bytes += CacheBytesRead<Layer, Policy>(length); });
  return bytes;
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_TOKEN_WORK_H_
