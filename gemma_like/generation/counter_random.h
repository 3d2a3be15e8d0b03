// Random numbers as a function of the position where they are used, so that forks, rewinds and
// other machines have no generator state to carry along.
#ifndef INLAY_GEMMA_LIKE_GENERATION_COUNTER_RANDOM_H_
#define INLAY_GEMMA_LIKE_GENERATION_COUNTER_RANDOM_H_

#include <array>
#include <cstdint>

namespace inlay {

// Philox4x32-10 (Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3").
constexpr std::array<uint32_t, 4> Philox(std::array<uint32_t, 4> counter,
                                         std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// In [0, 1), with 53 random bits: random number `choice` of a position.
constexpr double RandomUnit(uint64_t seed, uint64_t position, uint32_t choice) {
  const std::array<uint32_t, 4> bits =
      Philox({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), choice, 0},
             {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  const uint64_t wide = uint64_t{bits[0]} << 32 | bits[1];
  return static_cast<double>(wide >> 11) * 0x1p-53;
}

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GENERATION_COUNTER_RANDOM_H_
