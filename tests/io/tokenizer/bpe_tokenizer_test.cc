#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"
#include "tests/repetitions.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kAfterBpeBase = 257;  // id of the first token after BpeBase

int32_t IdOf(char c) { return 1 + static_cast<uint8_t>(c); }

TEST(BpeTokenizerTest, MergesInOrderOfTheListLeftmostFirst) {
  TestVocabulary vocabulary = BpeBase("gpt-2");
  for (const char* text : {"bc", "ab", "aa"}) vocabulary.Add(text, 1);
  vocabulary.merges = {{"b c", "a b", "a a"}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("abc"), ElementsAre(IdOf('a'), kAfterBpeBase));
  EXPECT_THAT(*tokenizer->Encode("aaa"), ElementsAre(kAfterBpeBase + 2, IdOf('a')));
  EXPECT_THAT(*tokenizer->Encode("aab"), ElementsAre(IdOf('a'), kAfterBpeBase + 1));
}

TEST(BpeTokenizerTest, ATokenThatMergesDoNotReachIsNotUsed) {
  TestVocabulary vocabulary = BpeBase("gpt-2");
  vocabulary.Add("abc", 1);
  const auto tokenizer = Must(vocabulary.Load());
  for (int i = 0; i < 2; ++i) {  // the answer is remembered; it must stay the same
    EXPECT_THAT(*tokenizer->Encode("abc"), ElementsAre(IdOf('a'), IdOf('b'), IdOf('c')));
  }
  vocabulary.pre = "llama-bpe";  // whole words first
  EXPECT_THAT(*Must(vocabulary.Load())->Encode("abc"), ElementsAre(0, kAfterBpeBase));
}

TEST(BpeTokenizerTest, MergesMayPassThroughTextsThatAreNoTokens) {
  TestVocabulary vocabulary = BpeBase("gpt-2");
  vocabulary.Add("abc", 1);
  vocabulary.merges = {{"a b", "ab c", "x y"}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("abc"), ElementsAre(kAfterBpeBase));
  EXPECT_THAT(*tokenizer->Encode("ab"), ElementsAre(IdOf('a'), IdOf('b')));
  EXPECT_THAT(*tokenizer->Encode("xy"), ElementsAre(IdOf('x'), IdOf('y')));
}

// "e" and U+0301 is U+00E9 to models whose tokenizer.json has the normalizer NFC.
TEST(BpeTokenizerTest, SomeKindsNormalize) {
  for (const auto& [pre, normalizes] : std::map<std::string, bool>{{"qwen2", true},
                                                                   {"qwen35", true},
                                                                   {"mpt", true},
                                                                   {"gpt-neox", true},
                                                                   {"olmo", true},
                                                                   {"gpt-2", false},
                                                                   {"dbrx", false},
                                                                   {"lfm2", false}}) {
    TestVocabulary vocabulary = BpeBase(pre);
    vocabulary.Add("<x>", 4);
    const auto tokenizer = Must(vocabulary.Load());
    const std::string apart = "e\xCC\x81", joined = "\xC3\xA9";
    const auto encode = [&](const std::string& text) {
      return *tokenizer->Encode(text, {.add_bos = false});
    };
    EXPECT_EQ(encode(apart) == encode(joined), normalizes) << pre;
    EXPECT_EQ(encode("a" + apart + "<x>b") == encode("a" + joined + "<x>b"), normalizes) << pre;
    EXPECT_THAT(encode("e<x>\xCC\x81"),
                ElementsAre(IdOf('e'), kAfterBpeBase, IdOf('\xCC'), IdOf('\x81')))
        << pre << ": marks do not reach over special tokens";
  }
}

TEST(BpeTokenizerTest, SpecialTokens) {
  TestVocabulary vocabulary = BpeBase("dbrx");
  vocabulary.Add("   ", 4);
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_EQ(tokenizer->Encode("<|endoftext|>")->size(), 13u);
  EncodeOptions trusted;
  trusted.parse_special = true;
  trusted.add_bos = true;
  EXPECT_THAT(*tokenizer->Encode("a<|endoftext|>", trusted), ElementsAre(0, IdOf('a'), 0));
  EXPECT_THAT(*tokenizer->Encode("    "), ElementsAre(kAfterBpeBase, IdOf(' ')));
  EXPECT_EQ(tokenizer->Decode({0, IdOf('a'), kAfterBpeBase, 0}), "a   ");
  EXPECT_EQ(tokenizer->FindSpecial("<|endoftext|>"), 0);
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(0));
}

TEST(BpeTokenizerTest, BytesWithoutTokens) {
  TestVocabulary vocabulary = BpeBase("gpt-2");
  vocabulary.types[IdOf('\xFF')] = 5;  // unused: never produced
  EXPECT_EQ(Must(vocabulary.Load())->Decode(*Must(vocabulary.Load())->Encode("a\xFF")),
            "a\xEF\xBF\xBD");
  vocabulary.Add("<unk>", 2);
  vocabulary.ids.push_back({"unknown_token_id", kAfterBpeBase});
  EXPECT_THAT(*Must(vocabulary.Load())->Encode("a\xFF"), ElementsAre(IdOf('a'), kAfterBpeBase));
}

// The definition, step by step: search all pairs for the first in the list, join, repeat.
std::vector<std::string> JoinPlainly(
    const std::string& text, const std::map<std::pair<std::string, std::string>, int>& ranks) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t best = parts.size();
    int best_rank = 0;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = ranks.find({parts[i], parts[i + 1]});
      if (it == ranks.end() || (best < parts.size() && it->second >= best_rank)) continue;
      best = i;
      best_rank = it->second;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<int64_t>(best) + 1);
  }
}

// Longer than any token, so that they are cut where no merge brings two bytes together.
TEST(BpeTokenizerTest, WordsWithoutEndAgreeWithThePlainDefinition) {
  std::mt19937 random(9);
  for (int round = 0; round < Repetitions(3); ++round) {
    TestVocabulary vocabulary = BpeBase("gpt-2");
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::vector<std::string> parts = {"a", "b", "c", "d"};
    for (int i = 0; i < 12; ++i) {
      const std::string left = parts[random() % parts.size()];
      const std::string right = parts[random() % parts.size()];
      if (!ranks.emplace(std::make_pair(left, right), i).second) continue;
      vocabulary.merges->push_back(left + " " + right);
      parts.push_back(left + right);
      vocabulary.Add(left + right, 1);
    }
    const auto tokenizer = Must(vocabulary.Load());
    std::string text;
    while (text.size() < 4500) text += "abcd"[random() % 4];
    std::vector<std::string> pieces;
    const std::vector<int32_t> ids = *tokenizer->Encode(text);
    for (const int32_t id : ids) pieces.emplace_back(tokenizer->Piece(id));
    EXPECT_TRUE(pieces == JoinPlainly(text, ranks)) << text;
  }
}

void ExpectBpeRefused(const TestVocabulary& vocabulary, const std::string& message) {
  const auto tokenizer = vocabulary.Load();
  ASSERT_FALSE(tokenizer.ok()) << message;
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(message));
}

TEST(BadBpeVocabularyTest, IsRefused) {
  TestVocabulary bad = BpeBase("klingon");
  ExpectBpeRefused(bad, "'tokenizer.ggml.pre' is 'klingon'");

  bad = BpeBase("gpt-2");
  bad.merges.reset();
  ExpectBpeRefused(bad, "'tokenizer.ggml.merges' is missing");

  for (const std::string merge : {"", "ab", " ", "a ", " b"}) {
    bad = BpeBase("gpt-2");
    bad.merges = {{"a b", merge}};
    ExpectBpeRefused(bad, "merge 1 in 'tokenizer.ggml.merges' is '" + merge + "'");
  }
  bad = BpeBase("gpt-2");
  bad.merges = {{"a " + std::string(5000, 'b')}};
  ExpectBpeRefused(bad, "of at most 4096 bytes");

  bad = BpeBase("gpt-2");
  bad.types[IdOf('\xFF')] = 5;
  bad.types[IdOf('\xEF')] = 5;  // so that U+FFFD cannot be written either
  ExpectBpeRefused(bad, "neither a token for byte 239");
}

}  // namespace
}  // namespace inlay
