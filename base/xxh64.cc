#include "base/xxh64.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace inlay {
namespace {

// The algorithm's five primes.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87;
constexpr uint64_t kPrime2 = 0xC2B2AE3D27D4EB4F;
constexpr uint64_t kPrime3 = 0x165667B19E3779F9;
constexpr uint64_t kPrime4 = 0x85EBCA77C2B2AE63;
constexpr uint64_t kPrime5 = 0x27D4EB2F165667C5;

static_assert(std::endian::native == std::endian::little,
              "words are read in the byte order of memory");

uint64_t Word64(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Word32(const unsigned char* bytes) {
  uint32_t word;
  std::memcpy(&word, bytes, sizeof(word));
  return word;
}

uint64_t Round(uint64_t lane, uint64_t word) {
  return std::rotl(lane + word * kPrime2, 31) * kPrime1;
}

}  // namespace

Xxh64::Xxh64(uint64_t seed)
    : seed_(seed), lanes_{seed + kPrime1 + kPrime2, seed + kPrime2, seed, seed - kPrime1} {}

void Xxh64::Stripe(const unsigned char* bytes) {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = Round(lanes_[i], Word64(bytes + 8 * i));
}

void Xxh64::Update(const void* data, size_t bytes) {
  if (bytes == 0) return;
  const auto* next = static_cast<const unsigned char*>(data);
  const size_t held = total_ % kStripeBytes;
  total_ += bytes;
  if (held > 0) {
    const size_t n = std::min(bytes, kStripeBytes - held);
    std::memcpy(rest_.data() + held, next, n);
    next += n;
    bytes -= n;
    if (held + n < kStripeBytes) return;
    Stripe(rest_.data());
  }
  for (; bytes >= kStripeBytes; bytes -= kStripeBytes, next += kStripeBytes) Stripe(next);
  std::memcpy(rest_.data(), next, bytes);
}

uint64_t Xxh64::Digest() const {
  uint64_t hash = seed_ + kPrime5;
  if (total_ >= kStripeBytes) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) +
           std::rotl(lanes_[3], 18);
    for (uint64_t lane : lanes_) hash = (hash ^ Round(0, lane)) * kPrime1 + kPrime4;
  }
  hash += total_;
  const unsigned char* next = rest_.data();
  size_t left = total_ % kStripeBytes;
  for (; left >= 8; left -= 8, next += 8) {
    hash = std::rotl(hash ^ Round(0, Word64(next)), 27) * kPrime1 + kPrime4;
  }
  if (left >= 4) {
    hash = std::rotl(hash ^ Word32(next) * kPrime1, 23) * kPrime2 + kPrime3;
    left -= 4;
    next += 4;
  }
  for (; left > 0; --left, ++next) hash = std::rotl(hash ^ *next * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace inlay
