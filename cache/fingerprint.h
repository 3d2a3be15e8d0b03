// A number that tells configs, and ways to store them, apart.
#ifndef INLAY_CACHE_FINGERPRINT_H_
#define INLAY_CACHE_FINGERPRINT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "configs/config.h"
#include "configs/pattern.h"
#include "ops/attention.h"
#include "ops/ssd.h"

namespace inlay {

namespace fingerprint_internal {

// FNV-1a (Fowler, Noll, Vo), which the compiler can compute.
class Hash {
 public:
  constexpr void Text(std::string_view text) {
    Number(text.size());
    for (char c : text) Byte(static_cast<unsigned char>(c));
  }
  constexpr void Number(uint64_t number) {
    for (int shift = 0; shift < 64; shift += 8) Byte(static_cast<unsigned char>(number >> shift));
  }
  constexpr uint64_t value() const { return value_; }

 private:
  constexpr void Byte(unsigned char byte) { value_ = (value_ ^ byte) * 1099511628211u; }
  uint64_t value_ = 14695981039346656037u;
};

template <class Layer>
constexpr void AddLayer(Hash& hash) {
  hash.Number(static_cast<uint64_t>(Layer::kKind));
  if constexpr (kIsAttention<Layer>) {
    constexpr AttentionShape kShape = Layer::kShape;
    for (int n : {kShape.heads, kShape.kv_heads, kShape.head_dim, int{kShape.qk_norm},
                  Layer::kRope.base, Layer::kRope.scale, int{Layer::kWindow}}) {
      hash.Number(static_cast<uint64_t>(n));
    }
  } else {
    constexpr Mamba2Shape kShape = Layer::kShape;
    for (int n :
         {kShape.heads, kShape.head_dim, kShape.state_dim, kShape.groups, kShape.conv_width}) {
      hash.Number(static_cast<uint64_t>(n));
    }
  }
}

}  // namespace fingerprint_internal

// Of a config's name and layers and of everything that decides how their past is laid out. Equal
// for two builds exactly when the one can go on from what the other stored.
template <ModelConfig Config, class Policy>
constexpr uint64_t ConfigFingerprint() {
  fingerprint_internal::Hash hash;
  hash.Text(Config::kName);
  for (size_t n :
       {size_t{Config::kVocabSize}, size_t{Config::kModelDim}, static_cast<size_t>(Policy::kKvType),
        size_t{Policy::kRewindDepth}, kKvBlockRows, kSsdChunk}) {
    hash.Number(n);
  }
  ForEachLayer<Config>([&]<class Layer>(int) { fingerprint_internal::AddLayer<Layer>(hash); });
  return hash.value();
}

}  // namespace inlay

#endif  // INLAY_CACHE_FINGERPRINT_H_
