// Hashes that identify a config and the layout of its cache.
#ifndef INLAY_CACHE_FINGERPRINT_H_
#define INLAY_CACHE_FINGERPRINT_H_

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "configs/config.h"
#include "configs/pattern.h"
#include "ops/attention/kv_shape.h"
#include "ops/attention/kv_type.h"
#include "ops/state_chunk.h"

namespace inlay {

namespace fingerprint_internal {

// FNV-1a (Fowler, Noll, Vo), computed at compile time.
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

}  // namespace fingerprint_internal

// The hash of a config's name, layers and factors: the same in every build, whatever the vocabulary
// size. Configs that compute different results from the same weights differ in what is hashed, so a
// cache may be used with a model of the same fingerprint.
template <ModelConfig Config>
constexpr uint64_t ConfigFingerprint() {
  fingerprint_internal::Hash hash;
  hash.Text(Config::kName);
  hash.Number(Config::kModelDim);
  for (float f : {Config::kNormEpsilon, Config::kEmbeddingScale, Config::kLogitDivisor,
                  Config::kLogitSoftCap}) {
    hash.Number(std::bit_cast<uint32_t>(f));
  }
  ForEachLayer<Config>([&]<class L>(int) {
    hash.Number(uint64_t{L::Norms::kPost} + 2 * uint64_t{L::Norms::kScalesStream});
    for (float f : L::kMixerMultipliers) hash.Number(std::bit_cast<uint32_t>(f));
    hash.Number(std::bit_cast<uint32_t>(L::kMlpMultiplier));
    ForEachPart<L>([&]<class P>() {
      hash.Text(P::kName);
      for (int n : P::Numbers()) hash.Number(static_cast<uint64_t>(n));
    });
  });
  return hash.value();
}

// The hash of ConfigFingerprint and of everything else that determines the layout of the cache, of
// which each of `ranks` ranks has a part. A build can continue from a cache that another one stored
// if this is the same in both.
template <ModelConfig Config, class Policy>
constexpr uint64_t StorageFingerprint(size_t ranks = 1) {
  fingerprint_internal::Hash hash;
  for (uint64_t n : {ConfigFingerprint<Config>(), static_cast<uint64_t>(Policy::kKvType),
                     static_cast<uint64_t>(Policy::kStateType), uint64_t{Policy::kRewindDepth},
                     uint64_t{kKvBlockRows}, uint64_t{kStateChunk}}) {
    hash.Number(n);
  }
  if (ranks > 1) hash.Number(ranks);
  return hash.value();
}

}  // namespace inlay

#endif  // INLAY_CACHE_FINGERPRINT_H_
