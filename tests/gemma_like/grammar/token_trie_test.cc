#include "gemma_like/grammar/token_trie.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "gemma_like/grammar/grammar_builder.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

// The tokens of a part with the bytes that lead to them.
std::multimap<std::string, int32_t> TokensOf(const TokenTrie::Part& part) {
  std::multimap<std::string, int32_t> tokens;
  std::string prefix;
  for (uint32_t i = 0; i < part.end(); ++i) {
    const TokenTrie::Node& node = part.nodes[i];
    if (i > 0) {
      prefix.resize(node.depth - 1);
      prefix.push_back(static_cast<char>(node.byte));
    }
    for (const int32_t token : part.TokensOf(i)) tokens.emplace(prefix, token);
    // Everything below begins with the prefix, and what follows does not.
    for (uint32_t below = i + 1; below < node.skip; ++below) {
      EXPECT_GT(part.nodes[below].depth, node.depth);
    }
    if (node.skip < part.end()) {
      EXPECT_LE(part.nodes[node.skip].depth, node.depth);
    }
  }
  return tokens;
}

TEST(TokenTrieTest, SharesTokensOutByWhatTheyAreMadeOf) {
  const std::string many(TokenTrie::kMostPlain + 1, 'x');
  const auto trie = Must(TokenTrie::Create(
      {"<c>", "ab", "a", "", "\xC3\xA9", "a\"", "ab", "\xC3", "a\xFF", "a\xC3\xA9\n", many, "\x7F"},
      {0}));
  using Tokens = std::multimap<std::string, int32_t>;
  EXPECT_EQ(TokensOf(trie->plain()), (Tokens{{"a", 2}, {"ab", 1}, {"ab", 6}, {"\xC3\xA9", 4}}));
  EXPECT_EQ(TokensOf(trie->others()), (Tokens{{ControlTokenSpelling(0), 0},
                                              {"a\"", 5},
                                              {"\xC3", 7},
                                              {"a\xC3\xA9\n", 9},
                                              {many, 10},
                                              {"\x7F", 11}}));
  EXPECT_EQ(TokensOf(trie->after_plain(0)),
            (Tokens{{ControlTokenSpelling(0), 0}, {"\xC3", 7}, {"\x7F", 11}}));
  EXPECT_EQ(TokensOf(trie->after_plain(1)), (Tokens{{"\"", 5}}));
  EXPECT_EQ(TokensOf(trie->after_plain(2)), (Tokens{{"\n", 9}}));
  EXPECT_EQ(TokensOf(trie->after_plain(TokenTrie::kMostPlain)), (Tokens{{"x", 10}}));
  EXPECT_EQ(trie->PlainUpTo(0), TokenBits{0});
  EXPECT_EQ(trie->PlainUpTo(1), TokenBits{1 << 2 | 1 << 4});
  EXPECT_EQ(trie->PlainUpTo(2), TokenBits({1 << 1 | 1 << 2 | 1 << 4 | 1 << 6}));
  EXPECT_EQ(trie->Bytes(5), "a\"");
  EXPECT_EQ(trie->Bytes(8), "");
  EXPECT_EQ(trie->Bytes(12), "");
  EXPECT_EQ(trie->Bytes(-1), "");
}

TEST(TokenTrieTest, TakesTheTokenizersBytes) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("\xE2\x96\x81the", 1);
  const auto tokenizer = Must(vocabulary.Load());
  const auto trie = Must(TokenTrie::Create(*tokenizer));
  EXPECT_EQ(trie->size(), tokenizer->size());
  EXPECT_EQ(trie->Bytes(0), "");                       // <unk>
  EXPECT_EQ(trie->Bytes(1), ControlTokenSpelling(1));  // <s>
  EXPECT_EQ(trie->Bytes(3 + 'a'), "a");
  EXPECT_EQ(trie->Bytes(3 + 0xFF), "");
  EXPECT_EQ(trie->Bytes(3 + 256), " the");
}

}  // namespace
}  // namespace inlay
