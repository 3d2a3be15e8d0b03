// The checksum against published values, and that it does not see how its input is cut.
#include "base/xxh64.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace inlay {
namespace {

uint64_t Of(const std::string& text, uint64_t seed = 0) {
  return Xxh64Of(text.data(), text.size(), seed);
}

// The values that the algorithm's own library gives.
TEST(Xxh64Test, KnownValues) {
  EXPECT_EQ(Of(""), 0xEF46DB3751D8E999u);
  EXPECT_EQ(Of("a"), 0xD24EC4F1A98C6E5Bu);
  EXPECT_EQ(Of("abc"), 0x44BC2CF5AD770999u);
  std::string bytes;
  for (int i = 0; i < 101; ++i) bytes.push_back(static_cast<char>(i * 7));
  EXPECT_EQ(Of(bytes), 0x42312F4D55D9BD17u);
  EXPECT_EQ(Of(bytes, 12345), 0x2E03F45EF6DAB834u);
  EXPECT_EQ(Of(bytes.substr(0, 64)), 0xBF3052E3445775D0u);
  EXPECT_EQ(Of(bytes.substr(0, 31), 1), 0x67F506790E4C2A7Cu);
}

TEST(Xxh64Test, PiecesDoNotMatter) {
  std::mt19937_64 random(1);
  std::vector<unsigned char> bytes(1000);
  for (auto& byte : bytes) byte = static_cast<unsigned char>(random());
  for (int round = 0; round < 200; ++round) {
    const size_t size = random() % bytes.size();
    Xxh64 hash(7);
    for (size_t at = 0; at < size;) {
      const size_t n = std::min<size_t>(random() % 70, size - at);
      hash.Update(bytes.data() + at, n);
      at += n;
    }
    ASSERT_EQ(hash.Digest(), Xxh64Of(bytes.data(), size, 7)) << size;
  }
}

TEST(Xxh64Test, EveryBitCounts) {
  std::string bytes(100, 'x');
  const uint64_t before = Of(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
    ASSERT_NE(Of(bytes), before);
    bytes[bit / 8] ^= static_cast<char>(1 << bit % 8);
  }
}

}  // namespace
}  // namespace inlay
