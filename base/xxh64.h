// A fast 64-bit checksum of bytes.
#ifndef INLAY_BASE_XXH64_H_
#define INLAY_BASE_XXH64_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace inlay {

// XXH64 of Y. Collet (https://github.com/Cyan4973/xxHash, doc/xxhash_spec.md), fed in pieces: the
// digest depends on the bytes and the seed, not on where the pieces end. It detects accidental
// corruption, not deliberate collisions.
class Xxh64 {
 public:
  explicit Xxh64(uint64_t seed = 0);

  void Update(const void* data, size_t bytes);

  // The hash of all bytes so far; more Update calls may follow.
  uint64_t Digest() const;

 private:
  static constexpr size_t kStripeBytes = 32;  // one 64-bit word for each of the four lanes

  void Stripe(const unsigned char* bytes);

  uint64_t seed_;
  std::array<uint64_t, 4> lanes_;
  std::array<unsigned char, kStripeBytes> rest_;  // the last total_ % kStripeBytes bytes
  uint64_t total_ = 0;
};

inline uint64_t Xxh64Of(const void* data, size_t bytes, uint64_t seed = 0) {
  Xxh64 hash(seed);
  hash.Update(data, bytes);
  return hash.Digest();
}

}  // namespace inlay

#endif  // INLAY_BASE_XXH64_H_
