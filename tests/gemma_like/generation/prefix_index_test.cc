#include "gemma_like/generation/prefix_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace inlay {
namespace {

using Tokens = std::vector<int32_t>;

struct Entry {
  size_t floor;
  int value;
};

// What the index is to find, by looking at all sequences.
size_t LongestOf(const std::map<Tokens, Entry>& all, const Tokens& text, bool that_serves = true) {
  size_t longest = 0;
  for (const auto& [tokens, entry] : all) {
    const size_t most = std::min(tokens.size(), text.size());
    size_t common = 0;
    while (common < most && tokens[common] == text[common]) ++common;
    if (common >= entry.floor || !that_serves) longest = std::max(longest, common);
  }
  return longest;
}

TEST(PrefixIndexTest, TheLongestBeginningThatServes) {
  PrefixIndex<int> index;
  EXPECT_EQ(index.Find(Tokens{1, 2}).length, 0u);
  EXPECT_EQ(index.Insert(Tokens{1, 2, 3, 4}, 0, 1), 0);
  EXPECT_EQ(index.Insert(Tokens{1, 2, 5}, 3, 2), 0);
  EXPECT_EQ(index.Insert(Tokens{1, 2}, 2, 3), 0);
  EXPECT_EQ(index.Find(Tokens{1, 2, 3, 9}).length, 3u);
  EXPECT_EQ(index.Find(Tokens{1, 2, 3, 9}).value, 1);
  EXPECT_EQ(index.Find(Tokens{1, 2, 5, 9}).value, 2);
  EXPECT_EQ(index.Find(Tokens{1, 9}).value, 1) << "the others cannot go back so far";
  EXPECT_EQ(index.Find(Tokens{1, 9}).length, 1u);
  EXPECT_EQ(index.Find(Tokens{9}).length, 0u);
  EXPECT_EQ(index.Find(Tokens{}).length, 0u);
  EXPECT_EQ(index.Beyond(Tokens{1, 2, 3, 9}), 1);
  EXPECT_EQ(index.Beyond(Tokens{1, 2, 3, 4, 5}), 0) << "goes on from all of a sequence";
  const auto any = [](int, size_t) { return true; };
  EXPECT_EQ(index.Beginning(Tokens{1, 2, 3}, any), 3);
  EXPECT_EQ(index.Beginning(Tokens{1, 2, 5, 9}, any), 2);
  EXPECT_EQ(index.Beginning(Tokens{1, 2, 5}, any), 3) << "a shorter one";
  EXPECT_EQ(index.Beginning(Tokens{1, 2}, any), 0);
  EXPECT_EQ(index.Beginning(Tokens{}, any), 0);
  EXPECT_EQ(index.Beginning(Tokens{1, 2, 5, 9}, [](int, size_t floor) { return floor < 3; }), 3);
  EXPECT_EQ(index.Insert(Tokens{1, 2}, 0, 4), 3) << "replaced";
  index.Erase(Tokens{1, 2, 3, 4});
  EXPECT_EQ(index.Find(Tokens{1, 2, 3, 4}).value, 4);
  EXPECT_EQ(index.Find(Tokens{1, 2, 3, 4}).length, 2u);
}

TEST(PrefixIndexTest, RandomSequences) {
  std::mt19937 random(5);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int round = 0; round < 30; ++round) {
    PrefixIndex<int> index;
    std::map<Tokens, Entry> all;
    int values = 0;
    // Few different tokens, so that beginnings meet.
    const auto sequence = [&] {
      Tokens tokens(1 + below(12));
      for (int32_t& token : tokens) token = static_cast<int32_t>(below(2));
      return tokens;
    };
    for (int step = 0; step < 300; ++step) {
      if (below(3) > 0 || all.empty()) {
        const Tokens tokens = sequence();
        const Entry entry = {below(2) == 0 ? 0 : below(tokens.size() + 1), ++values};
        const auto before = all.find(tokens);
        EXPECT_EQ(index.Insert(tokens, entry.floor, entry.value),
                  before == all.end() ? 0 : before->second.value);
        all[tokens] = entry;
      } else {
        auto gone = all.begin();
        std::advance(gone, static_cast<ptrdiff_t>(below(all.size())));
        index.Erase(gone->first);
        all.erase(gone);
      }
      const Tokens text = sequence();
      const auto found = index.Find(text);
      ASSERT_EQ(found.length, LongestOf(all, text)) << "round " << round << " step " << step;
      ASSERT_EQ(index.Shared(text), LongestOf(all, text, /*that_serves=*/false));
      const size_t shared = index.Shared(text);
      const auto is_beyond = [&](const auto& entry) {
        return entry.first.size() > shared &&
               LongestOf({entry}, text, /*that_serves=*/false) == shared;
      };
      const int beyond = index.Beyond(text);
      ASSERT_EQ(beyond != 0, std::any_of(all.begin(), all.end(), is_beyond));
      ASSERT_TRUE(beyond == 0 || std::any_of(all.begin(), all.end(), [&](const auto& entry) {
                    return entry.second.value == beyond && is_beyond(entry);
                  }));
      int beginning = 0;  // the longest that may be found, of which the map has shorter ones first
      for (const auto& [tokens, entry] : all) {
        if (tokens.size() < text.size() && entry.value % 2 == 0 &&
            std::equal(tokens.begin(), tokens.end(), text.begin()))
          beginning = entry.value;
      }
      ASSERT_EQ(index.Beginning(text, [](int value, size_t) { return value % 2 == 0; }), beginning);
      if (found.length == 0) continue;
      const auto by_value = std::find_if(all.begin(), all.end(), [&](const auto& entry) {
        return entry.second.value == found.value;
      });
      ASSERT_NE(by_value, all.end());
      ASSERT_EQ(LongestOf({*by_value}, text), found.length);
    }
  }
}

}  // namespace
}  // namespace inlay
