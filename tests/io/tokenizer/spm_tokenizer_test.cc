#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int32_t kByte0 = 3;           // id of <0x00>
constexpr int32_t kAfterSpmBase = 259;  // id of the first token after SpmBase

EncodeOptions NoBos(bool parse_special = false) {
  EncodeOptions options;
  options.add_bos = false;
  options.parse_special = parse_special;
  return options;
}

// Loads a vocabulary that must be right.
TestVocabulary WithoutSpacePrefix() {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.flags = {{"add_space_prefix", false}};
  return vocabulary;
}

TEST(SpmTokenizerTest, BestScoreFirstThenLeftmost) {
  TestVocabulary vocabulary = WithoutSpacePrefix();
  vocabulary.Add("a", 1, -10);  // kAfterSpmBase
  vocabulary.Add("b", 1, -10);  // + 1
  vocabulary.Add("c", 1, -10);  // + 2
  vocabulary.Add("ab", 1, -2);  // + 3
  vocabulary.Add("bc", 1, -1);  // + 4
  vocabulary.Add("aa", 1, -3);  // + 5
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("abc", NoBos()), ElementsAre(kAfterSpmBase, kAfterSpmBase + 4));
  EXPECT_THAT(*tokenizer->Encode("aaa", NoBos()), ElementsAre(kAfterSpmBase + 5, kAfterSpmBase));
  EXPECT_THAT(*tokenizer->Encode("aab", NoBos()), ElementsAre(kAfterSpmBase, kAfterSpmBase + 3));
}

TEST(SpmTokenizerTest, SpacePrefixAndBosAreTheDefaults) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("\xE2\x96\x81", 1, -5);  // the space
  vocabulary.Add("a", 1, -5);
  vocabulary.Add(
      "\xE2\x96\x81"
      "a",
      1, -1);
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_TRUE(tokenizer->adds_bos());
  EXPECT_THAT(*tokenizer->Encode("a a"), ElementsAre(1, kAfterSpmBase + 2, kAfterSpmBase + 2));
  EXPECT_EQ(tokenizer->Decode(*tokenizer->Encode("a a")), "a a");
  EXPECT_EQ(tokenizer->Piece(kAfterSpmBase + 2), " a");
  EXPECT_EQ(tokenizer->TokenText(kAfterSpmBase + 2),
            "\xE2\x96\x81"
            "a");
  EXPECT_THAT(*tokenizer->Encode(""), ElementsAre(1));
  // After a control token a text starts anew.
  EXPECT_THAT(*tokenizer->Encode("a</s>a", NoBos(true)),
              ElementsAre(kAfterSpmBase + 2, 2, kAfterSpmBase + 2));
  EXPECT_EQ(tokenizer->Decode({kAfterSpmBase + 2, 2, kAfterSpmBase + 2}), "aa");
}

TEST(SpmTokenizerTest, ATextThatContinuesHasNoSpaceInFront) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("\xE2\x96\x81", 1, -5);  // the space
  vocabulary.Add("a", 1, -5);
  const auto tokenizer = Must(vocabulary.Load());
  const EncodeOptions continues = {.add_bos = false, .continues = true};
  EXPECT_THAT(*tokenizer->Encode("a a", continues),
              ElementsAre(kAfterSpmBase + 1, kAfterSpmBase, kAfterSpmBase + 1));
  // Each text of a stream continues.
  const auto stream = Must(tokenizer->StartEncoding(continues));
  for (int i = 0; i < 2; ++i) {
    std::vector<int32_t> ids;
    ASSERT_TRUE(stream->Push("a", &ids).ok());
    ASSERT_TRUE(stream->Finish(&ids).ok());
    EXPECT_THAT(ids, ElementsAre(kAfterSpmBase + 1));
  }
}

TEST(SpmTokenizerTest, FlagsOfTheFileAreFollowed) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.Add("a", 1, -5);
  vocabulary.flags = {{"add_space_prefix", false}, {"add_bos_token", false}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_FALSE(tokenizer->adds_bos());
  EXPECT_THAT(*tokenizer->Encode("a"), ElementsAre(kAfterSpmBase));
  EncodeOptions with_bos;
  with_bos.add_bos = true;
  EXPECT_THAT(*tokenizer->Encode("a", with_bos), ElementsAre(1, kAfterSpmBase));
}

TEST(SpmTokenizerTest, UserDefinedTokensAreCutOutLongestFirst) {
  TestVocabulary vocabulary = WithoutSpacePrefix();
  vocabulary.Add("a", 1, -5);
  vocabulary.Add("\n", 4);                        // + 1
  vocabulary.Add("\n\n", 4);                      // + 2
  vocabulary.Add("\xE2\x96\x81\xE2\x96\x81", 4);  // + 3: two spaces
  vocabulary.Add("<tag>", 4);                     // + 4
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("\n\n\na  <tag>", NoBos()),
              ElementsAre(kAfterSpmBase + 2, kAfterSpmBase + 1, kAfterSpmBase, kAfterSpmBase + 3,
                          kAfterSpmBase + 4));
  EXPECT_EQ(tokenizer->Piece(kAfterSpmBase + 3), "  ");
  EXPECT_EQ(tokenizer->FindSpecial("<tag>"), kAfterSpmBase + 4);
  EXPECT_EQ(tokenizer->FindSpecial("</s>"), 2);
  EXPECT_EQ(tokenizer->FindSpecial("a"), std::nullopt);
}

TEST(SpmTokenizerTest, ControlTokensComeFromTrustedTextOnly) {
  TestVocabulary vocabulary = WithoutSpacePrefix();
  // Joining "<" "/s" ">" leads to the text of </s>, which must not become that token.
  for (const char* text : {"<", "/", "s", ">", "/s", "</s", "/s>"}) vocabulary.Add(text, 1, -1);
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("</s>", NoBos(true)), ElementsAre(2));
  const std::vector<int32_t> plain = *tokenizer->Encode("</s>", NoBos(false));
  for (const int32_t id : plain) EXPECT_FALSE(tokenizer->IsControl(id));
  EXPECT_EQ(tokenizer->Decode(plain), "</s>");
  EXPECT_TRUE(tokenizer->IsControl(2));
  EXPECT_EQ(tokenizer->Piece(2), "");
  EXPECT_TRUE(tokenizer->IsEndOfGeneration(2));
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(1));
}

TEST(SpmTokenizerTest, ByteTokenTextsStayText) {
  const auto tokenizer = Must(WithoutSpacePrefix().Load());
  const std::vector<int32_t> ids = *tokenizer->Encode("<0x41>", NoBos());
  EXPECT_EQ(ids.size(), 6u);
  EXPECT_EQ(tokenizer->Decode(ids), "<0x41>");
}

TEST(SpmTokenizerTest, UnknownCharactersBecomeBytes) {
  const auto tokenizer = Must(WithoutSpacePrefix().Load());
  EXPECT_THAT(*tokenizer->Encode("\xC3\xA9\xFF", NoBos()),
              ElementsAre(kByte0 + 0xC3, kByte0 + 0xA9, kByte0 + 0xFF));
  // The character that stands for a space in tokens is not one in texts.
  EXPECT_THAT(*tokenizer->Encode("\xE2\x96\x81", NoBos()),
              ElementsAre(kByte0 + 0xE2, kByte0 + 0x96, kByte0 + 0x81));
}

// Converters that read tokenizer.json.
TEST(SpmTokenizerTest, ByteTokensAreFoundByTheirTextsWhereNoneHasTheType) {
  TestVocabulary vocabulary = WithoutSpacePrefix();
  for (int32_t& type : vocabulary.types) type = type == 6 ? 1 : type;
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("\xC3\xA9", NoBos()), ElementsAre(3 + 0xC3, 3 + 0xA9));
  EXPECT_EQ(tokenizer->Decode({3 + 0xC3, 3 + 0xA9}), "\xC3\xA9");
  vocabulary.types[3] = 6;  // then the types are meant
  EXPECT_THAT(*Must(vocabulary.Load())->Encode("a", NoBos()), ElementsAre(0));
}

TEST(SpmTokenizerTest, WithoutByteTokensTheyBecomeUnknown) {
  TestVocabulary vocabulary;
  vocabulary.scores.emplace();
  vocabulary.Add("<unk>", 2);
  vocabulary.Add("a", 1, -1);
  vocabulary.ids = {{"unknown_token_id", 0}};
  vocabulary.flags = {{"add_space_prefix", false}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("a\xC3\xA9"
                                 "a"),
              ElementsAre(1, 0, 1));
  EXPECT_EQ(tokenizer->Decode({1, 0, 1, 99, -1}), "aa");
}

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == ' ' ? std::string("\xE2\x96\x81") : std::string(1, c);
  return escaped;
}

// The definition, step by step: search all pairs for the best, join, repeat.
std::vector<std::string> JoinPlainly(const std::string& text,
                                     const std::map<std::string, float>& scores) {
  std::vector<std::string> parts;
  for (const char c : text) parts.emplace_back(1, c);
  while (true) {
    size_t best = parts.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto it = scores.find(parts[i] + parts[i + 1]);
      if (it == scores.end()) continue;
      if (best == parts.size() || it->second > scores.at(parts[best] + parts[best + 1])) best = i;
    }
    if (best == parts.size()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<int64_t>(best) + 1);
  }
}

TEST(SpmTokenizerTest, AgreesWithThePlainDefinition) {
  std::mt19937 random(11);
  for (int round = 0; round < 100; ++round) {
    TestVocabulary vocabulary = WithoutSpacePrefix();
    std::map<std::string, float> scores;
    for (int i = 0; i < 60; ++i) {
      std::string token;
      for (uint32_t j = 0; j < 1 + random() % 5; ++j) token += "abc "[random() % 4];
      // Of both signs, zeros too, with ties.
      const float score = (random() % 2 == 0 ? 1.0f : -1.0f) * static_cast<float>(random() % 6);
      if (!scores.emplace(token, score).second) continue;
      vocabulary.Add(Escaped(token), 1, score);
    }
    const auto tokenizer = Must(vocabulary.Load());
    for (int i = 0; i < 50; ++i) {
      std::string text;
      for (uint32_t j = 0; j < random() % 30; ++j) text += "abc d"[random() % 5];
      std::vector<std::string> pieces;
      const std::vector<int32_t> ids = *tokenizer->Encode(text, NoBos());
      for (const int32_t id : ids) pieces.emplace_back(tokenizer->Piece(id));
      ASSERT_EQ(pieces, JoinPlainly(text, scores)) << "'" << text << "'";
    }
  }
}

// As in files of Gemma 4: a list of merges, and scores that mean nothing.
TestVocabulary MergesBase(const std::vector<std::string>& characters) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.model = "gemma4";
  vocabulary.merges.emplace();
  vocabulary.flags = {{"add_space_prefix", false}, {"add_bos_token", false}};
  for (const std::string& character : characters) vocabulary.Add(Escaped(character), 1, -1000);
  return vocabulary;
}

// The definition, step by step: search all pairs for the first in the list, join, repeat.
std::vector<std::string> MergePlainly(
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

TEST(MergesTest, AgreeWithThePlainDefinition) {
  std::mt19937 random(5);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::string> parts = {"a", "b", "c", " "};
    TestVocabulary vocabulary = MergesBase(parts);
    std::map<std::pair<std::string, std::string>, int> ranks;
    std::set<std::string> known(parts.begin(), parts.end());
    for (int i = 0; i < 40; ++i) {
      const std::string left = parts[random() % parts.size()];
      const std::string right = parts[random() % parts.size()];
      if (left.size() + right.size() > 8) continue;
      vocabulary.merges->push_back(Escaped(left) + " " + Escaped(right));
      ranks.emplace(std::make_pair(left, right), i);  // the first of equal ones
      if (!known.insert(left + right).second) continue;
      parts.push_back(left + right);
      vocabulary.Add(Escaped(left + right), 1, -1000);
    }
    const auto tokenizer = Must(vocabulary.Load());
    for (int i = 0; i < 50; ++i) {
      std::string text;
      for (uint32_t j = 0; j < random() % 30; ++j) text += "abc "[random() % 4];
      std::vector<std::string> pieces;
      const std::vector<int32_t> ids = *tokenizer->Encode(text, NoBos());
      for (const int32_t id : ids) pieces.emplace_back(tokenizer->Piece(id));
      ASSERT_EQ(pieces, MergePlainly(text, ranks)) << "'" << text << "'";
    }
  }
}

TEST(MergesTest, AreNamedByTheModelOrByThePreTokenizer) {
  TestVocabulary vocabulary = MergesBase({"a", "b", "c", "ab", "bc"});
  vocabulary.merges = {{"b c", "a b"}};
  const auto expect = [&] {
    const auto tokenizer = Must(vocabulary.Load());
    // By scores it would be "ab", "c". A character without a token becomes its bytes.
    EXPECT_THAT(*tokenizer->Encode("abc\xC3\xA9", NoBos()),
                ElementsAre(kAfterSpmBase, kAfterSpmBase + 4, 3 + 0xC3, 3 + 0xA9));
    // Files whose template prints BOS say that none is added; the model cannot do without.
    EXPECT_TRUE(tokenizer->adds_bos());
  };
  expect();
  vocabulary.pre = "gemma4";
  expect();
  vocabulary.model = "llama";
  expect();
  vocabulary.scores.reset();
  expect();
  vocabulary.pre = "default";
  EXPECT_THAT(std::string(vocabulary.Load().status().message()), HasSubstr("scores' is missing"));
}

// Whatever the merges say of newlines.
TEST(MergesTest, RunsOfNewlinesStandApart) {
  TestVocabulary vocabulary = MergesBase({"a", "\n", "\n\n", "\n\n\n", "a\n", "\na"});
  vocabulary.merges = {{"a \n", "\n a", "\n \n"}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_THAT(*tokenizer->Encode("a\na", NoBos()),
              ElementsAre(kAfterSpmBase, kAfterSpmBase + 1, kAfterSpmBase));
  EXPECT_THAT(*tokenizer->Encode("\n\n\na", NoBos()),
              ElementsAre(kAfterSpmBase + 3, kAfterSpmBase));
  // Longer than every token: by merges.
  EXPECT_THAT(*tokenizer->Encode("\n\n\n\n\n", NoBos()),
              ElementsAre(kAfterSpmBase + 2, kAfterSpmBase + 2, kAfterSpmBase + 1));
}

TEST(MergesTest, OthersThanOfTokensAreIgnored) {
  TestVocabulary vocabulary = MergesBase({"a", "b", "c", "ab"});
  vocabulary.merges = {{"b c", "x a", "a b"}};
  EXPECT_THAT(*Must(vocabulary.Load())->Encode("abc", NoBos()),
              ElementsAre(kAfterSpmBase + 3, kAfterSpmBase + 2));
}

TEST(MergesTest, AreCheckedWhenTheFileIsRead) {
  TestVocabulary vocabulary = MergesBase({"a"});
  vocabulary.merges = {{"ab"}};
  EXPECT_THAT(std::string(vocabulary.Load().status().message()),
              HasSubstr("merge 0 in 'tokenizer.ggml.merges' is 'ab'"));
  vocabulary.merges.reset();
  EXPECT_THAT(std::string(vocabulary.Load().status().message()), HasSubstr("merges' is missing"));
}

void ExpectSpmRefused(const TestVocabulary& vocabulary, const std::string& message) {
  const auto tokenizer = vocabulary.Load();
  ASSERT_FALSE(tokenizer.ok()) << message;
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(tokenizer.status().message()), HasSubstr("test.gguf: "));
}

TEST(BadSpmVocabularyTest, IsRefused) {
  TestVocabulary bad = SpmBase();
  bad.model = "bert";
  ExpectSpmRefused(bad, "'tokenizer.ggml.model' is 'bert'");

  bad = SpmBase();
  bad.tokens.clear();
  ExpectSpmRefused(bad, "has 0 tokens");

  bad = SpmBase();
  bad.types.pop_back();
  ExpectSpmRefused(bad, "has 258 elements, but there are 259 tokens");

  bad = SpmBase();
  bad.scores->push_back(1);
  ExpectSpmRefused(bad, "'tokenizer.ggml.scores' has 260 elements");

  bad = SpmBase();
  bad.scores.reset();
  ExpectSpmRefused(bad, "'tokenizer.ggml.scores' is missing");

  for (const float score : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    bad = SpmBase();
    (*bad.scores)[5] = score;
    ExpectSpmRefused(bad, "the score of token 5");
  }
  for (const int32_t type : {7, -1}) {
    bad = SpmBase();
    bad.types[9] = type;
    ExpectSpmRefused(bad, "token 9 has type " + std::to_string(type));
  }
  for (const char* text : {"<0x4>", "<0xG1>", "<0x411>", "41", ""}) {
    bad = SpmBase();
    bad.tokens[kByte0 + 0x41] = text;
    ExpectSpmRefused(bad, "byte token 68 is written");
  }
  bad = SpmBase();
  bad.ids = {{"bos_token_id", 259}};
  ExpectSpmRefused(bad, "'tokenizer.ggml.bos_token_id' is 259, but there are only 259 tokens");

  bad = SpmBase();
  bad.types[kByte0 + 7] = 1;
  bad.ids.clear();
  ExpectSpmRefused(bad, "neither a token for byte 7");
  bad.ids = {{"unknown_token_id", 1}};  // a control token does not count
  ExpectSpmRefused(bad, "neither a token for byte 7");

  bad = SpmBase();
  bad.Add(std::string(4097, 'x'), 1);
  ExpectSpmRefused(bad, "token 259 in 'tokenizer.ggml.tokens' is 4097 bytes long");
}

TEST(SpmTokenizerTest, NoIdIsWrittenAsTheLargestNumber) {
  TestVocabulary vocabulary = SpmBase();
  vocabulary.ids = {{"bos_token_id", UINT32_MAX}};
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_EQ(tokenizer->bos(), std::nullopt);
  EXPECT_FALSE(tokenizer->adds_bos());
}

TEST(NoVocabularyTest, EncodingFailsWithASentence) {
  TestVocabulary vocabulary;
  vocabulary.model = "no_vocab";
  const auto tokenizer = Must(vocabulary.Load());
  EXPECT_EQ(tokenizer->size(), 0u);
  EXPECT_THAT(std::string(tokenizer->Encode("a").status().message()),
              HasSubstr("'no_vocab', so text cannot be encoded"));
  EXPECT_EQ(tokenizer->Decode({1, 2}), "");
  EXPECT_FALSE(tokenizer->IsEndOfGeneration(0));
}

}  // namespace
}  // namespace inlay
