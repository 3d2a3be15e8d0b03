#include "io/tokenizer/hash_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "io/tokenizer/merges.h"
#include "io/tokenizer/token_index.h"

namespace inlay {
namespace {

struct NumberSlot {
  uint64_t key = 0;
  int32_t value = -1;
  bool is_free() const { return value < 0; }
};

TEST(HashTable, HoldsWhatAnOrderedMapHolds) {
  std::mt19937_64 random(3);
  HashTable<NumberSlot> table(2000);
  std::map<uint64_t, int> expected;
  const auto find = [&](uint64_t key) {
    return table.Find(MixBits(key), [&](const NumberSlot& slot) { return slot.key == key; });
  };
  EXPECT_EQ(find(5), nullptr);
  for (int i = 0; i < 2000; ++i) {
    const uint64_t key = random() % 1500 << (random() % 3 * 20);
    const bool is_new = table.Insert(MixBits(key), {key, i},
                                     [&](const NumberSlot& slot) { return slot.key == key; });
    EXPECT_EQ(is_new, expected.emplace(key, i).second);
    const uint64_t other = random() % 1500 << (random() % 3 * 20);
    const auto it = expected.find(other);
    const NumberSlot* const slot = find(other);
    ASSERT_EQ(slot != nullptr, it != expected.end());
    ASSERT_TRUE(slot == nullptr || slot->value == it->second);
  }
  for (const auto& [key, value] : expected) {
    ASSERT_NE(find(key), nullptr);
    EXPECT_EQ(find(key)->value, value);
  }
  EXPECT_FALSE(table.IsCrowded());
}

TEST(HashTable, IsEmptyUnlessItIsMadeForKeys) {
  const HashTable<NumberSlot> none;
  EXPECT_EQ(none.Find(1, [](const NumberSlot&) { return true; }), nullptr);
  EXPECT_FALSE(none.IsValid());
  EXPECT_TRUE(HashTable<NumberSlot>(0).IsValid());
}

TEST(HashTable, IsCrowdedByKeysOfOneHash) {
  constexpr int kKeys = 2000;
  HashTable<NumberSlot> table(kKeys);
  int inserted = 0;
  const auto never = [](const NumberSlot&) { return false; };
  while (inserted < kKeys && !table.IsCrowded()) table.Insert(7, {1, inserted++}, never);
  EXPECT_LT(inserted, kKeys);
  EXPECT_GT(inserted, 500);
}

// As a file may hold it.
HashTable<NumberSlot> TableOf(const std::vector<NumberSlot>& slots) {
  HashTable<NumberSlot> table;
  const auto fill = [&](std::vector<NumberSlot>& to) { to = slots; };
  HashTable<NumberSlot>::VisitArrays(table, fill);
  return table;
}

TEST(HashTable, IsNotValidWithoutRoomForSearches) {
  constexpr NumberSlot kTaken = {1, 1};
  const auto is_valid = [&](size_t size, const auto& is_taken) {
    std::vector<NumberSlot> slots(size);
    for (size_t i = 0; i < size; ++i) {
      if (is_taken(i)) slots[i] = kTaken;
    }
    return TableOf(slots).IsValid();
  };
  EXPECT_TRUE(is_valid(8, [](size_t i) { return i >= 4; }));
  EXPECT_FALSE(is_valid(8, [](size_t i) { return i >= 3; }));
  EXPECT_FALSE(is_valid(12, [](size_t i) { return i >= 10; }));
  // The same number of slots, apart and in one run.
  EXPECT_TRUE(is_valid(4096, [](size_t i) { return i % 2 == 0; }));
  EXPECT_FALSE(is_valid(4096, [](size_t i) { return i >= 2048; }));
  // Two runs; one, around the end.
  EXPECT_TRUE(is_valid(4096, [](size_t i) { return i % 2048 < 400; }));
  EXPECT_FALSE(is_valid(4096, [](size_t i) { return i < 400 || i >= 4096 - 400; }));
}

TEST(HashTable, IsValidAsItIsMade) {
  std::mt19937_64 random(4);
  for (size_t keys = 0; keys < 5000; keys = keys * 3 / 2 + 1) {
    HashTable<NumberSlot> table(keys);
    for (size_t i = 0; i < keys; ++i) {
      table.Insert(MixBits(random()), {i, 1}, [&](const NumberSlot&) { return false; });
    }
    EXPECT_TRUE(table.IsValid()) << keys;
  }
}

TEST(HashTable, EndsItsSearchWithoutAFreeSlot) {
  const HashTable<NumberSlot> table = TableOf(std::vector<NumberSlot>(8, NumberSlot{1, 1}));
  EXPECT_FALSE(table.IsValid());
  EXPECT_EQ(table.Find(3, [](const NumberSlot& slot) { return slot.key == 2; }), nullptr);
  EXPECT_NE(table.Find(3, [](const NumberSlot& slot) { return slot.key == 1; }), nullptr);
}

TEST(TokenIndex, FindsTextsOfAnyLength) {
  StringTable table;
  std::vector<std::string> texts = {"", std::string("\0", 1), std::string("\0\0", 2), "a\xFF"};
  for (size_t length = 1; length <= 40; ++length) {
    for (const char last : {'x', 'y'}) texts.push_back(std::string(length - 1, 'x') + last);
  }
  for (const std::string& text : texts) table.Add(text);
  table.Add("xy");  // again
  TokenIndex index(table.size());
  for (size_t i = 0; i < table.size(); ++i) index.Insert(table, static_cast<int32_t>(i));
  for (size_t i = 0; i < texts.size(); ++i)
    EXPECT_EQ(index.Find(table, std::string(texts[i])), static_cast<int32_t>(i)) << texts[i];
  EXPECT_EQ(index.Find(table, "b"), std::nullopt);
  EXPECT_EQ(index.Find(table, absl::string_view("\0\0\0", 3)), std::nullopt);
}

TEST(MergeTable, TheFirstOfEqualPairsCounts) {
  MergeTable merges(3);
  merges.Insert(1, 2, {0, 5});
  merges.Insert(2, 1, {1, 6});
  merges.Insert(1, 2, {2, 7});
  ASSERT_TRUE(merges.Find(1, 2).has_value());
  EXPECT_EQ(merges.Find(1, 2)->id, 5);
  EXPECT_EQ(merges.Find(2, 1)->rank, 1u);
  EXPECT_FALSE(merges.Find(2, 2).has_value());
  EXPECT_FALSE(merges.Find(-1, -1).has_value());
}

}  // namespace
}  // namespace inlay
