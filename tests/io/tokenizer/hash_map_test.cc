#include "io/tokenizer/hash_map.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace inlay {
namespace {

TEST(HashMap, HoldsWhatAnOrderedMapHolds) {
  std::mt19937_64 random(3);
  for (const size_t reserved : {0, 1, 700, 5000}) {
    HashMap<uint64_t, int> map;
    if (reserved > 0) map.Reserve(reserved);
    std::map<uint64_t, int> expected;
    EXPECT_EQ(map.Find(5), nullptr);
    for (int i = 0; i < 2000; ++i) {
      const uint64_t key = random() % 1500 << (random() % 3 * 20);
      EXPECT_EQ(map.Insert(key, i), expected.emplace(key, i).second);
      const uint64_t other = random() % 1500 << (random() % 3 * 20);
      const auto it = expected.find(other);
      const int* const value = map.Find(other);
      ASSERT_EQ(value != nullptr, it != expected.end());
      ASSERT_TRUE(value == nullptr || *value == it->second);
    }
    for (const auto& [key, value] : expected) {
      ASSERT_NE(map.Find(key), nullptr);
      EXPECT_EQ(*map.Find(key), value);
    }
  }
}

TEST(HashMap, KeysAreTextsNotPointers) {
  const std::vector<std::string> texts = {"", "a", "ab", std::string(300, 'x'), "a\xFF"};
  HashMap<absl::string_view, int32_t> map;
  for (size_t i = 0; i < texts.size(); ++i) {
    EXPECT_TRUE(map.Insert(texts[i], static_cast<int32_t>(i)));
    EXPECT_FALSE(map.Insert(std::string(texts[i]), -1));
  }
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(*map.Find(std::string(texts[i])), static_cast<int32_t>(i));
  EXPECT_EQ(map.Find("b"), nullptr);
  EXPECT_EQ(map.Find(absl::string_view("a\0", 2)), nullptr);
}

}  // namespace
}  // namespace inlay
