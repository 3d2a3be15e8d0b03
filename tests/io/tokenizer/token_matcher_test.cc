#include "io/tokenizer/token_matcher.h"

#include <map>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;
using Set = TokenMatcher::Set;

struct Token {
  std::string text;
  int32_t id;
  Set set;
};

TokenMatcher BuildOrDie(const std::vector<Token>& tokens) {
  TokenMatcher matcher;
  for (const Token& token : tokens) matcher.Add(token.text, token.id, token.set);
  const absl::Status status = matcher.Build();
  EXPECT_TRUE(status.ok()) << status;
  return matcher;
}

std::vector<Token> AnyText(const std::vector<std::string>& texts) {
  std::vector<Token> tokens;
  for (const std::string& text : texts)
    tokens.push_back({text, static_cast<int32_t>(tokens.size()), TokenMatcher::kAnyText});
  return tokens;
}

std::string Describe(const std::vector<TokenMatcher::Match>& matches) {
  std::string out;
  for (const TokenMatcher::Match& m : matches) {
    out += std::to_string(m.begin) + "+" + std::to_string(m.length) + "=" + std::to_string(m.id);
    out += " ";
  }
  return out;
}

std::string FindAll(const TokenMatcher& matcher, const std::string& text,
                    Set set = TokenMatcher::kAnyText) {
  std::vector<TokenMatcher::Match> matches;
  matcher.FindAll(set, text, 0, text.size(), &matches);
  return Describe(matches);
}

TEST(TokenMatcherTest, TheFirstAndThereTheLongest) {
  const TokenMatcher matcher = BuildOrDie(AnyText({"b", "abc", "bcde", "ab", "cd"}));
  EXPECT_EQ(FindAll(matcher, "xabcd"), "1+3=1 ");
  EXPECT_EQ(FindAll(matcher, "abxbcd"), "0+2=3 3+1=0 4+2=4 ");
  EXPECT_EQ(FindAll(matcher, "bcdeb"), "0+4=2 4+1=0 ");
  EXPECT_EQ(FindAll(matcher, ""), "");
  EXPECT_EQ(FindAll(matcher, "xyz"), "");
  EXPECT_EQ(FindAll(BuildOrDie({}), "xyz"), "");
}

TEST(TokenMatcherTest, SetsAndEqualTexts) {
  const TokenMatcher matcher = BuildOrDie({{"<a>", 7, TokenMatcher::kTrustedText},
                                           {"<a>", 9, TokenMatcher::kAnyText},
                                           {"<a>", 8, TokenMatcher::kAnyText},
                                           {"<b>", 3, TokenMatcher::kTrustedText},
                                           {"b>", 4, TokenMatcher::kAnyText},
                                           {"", 5, TokenMatcher::kAnyText}});
  EXPECT_EQ(FindAll(matcher, "<a><b>"), "0+3=8 4+2=4 ");
  EXPECT_EQ(FindAll(matcher, "<a><b>", TokenMatcher::kTrustedText), "0+3=7 3+3=3 ");
  EXPECT_EQ(matcher.FindExact("<a>"), 7);
  EXPECT_EQ(matcher.FindExact("b>"), 4);
  EXPECT_EQ(matcher.FindExact(">"), std::nullopt);
  EXPECT_EQ(matcher.FindExact("x<b>"), std::nullopt);
  EXPECT_EQ(matcher.FindExact(""), std::nullopt);
}

// The definition: at each place behind the last match, the longest token that begins there.
std::string FindPlainly(const std::vector<Token>& tokens, const std::string& text, Set set) {
  std::vector<TokenMatcher::Match> matches;
  for (size_t at = 0; at < text.size();) {
    const Token* best = nullptr;
    for (const Token& token : tokens) {
      if (token.set > set || token.text.empty()) continue;
      if (text.compare(at, token.text.size(), token.text) != 0) continue;
      if (best == nullptr || token.text.size() > best->text.size() ||
          (token.text.size() == best->text.size() && token.id < best->id)) {
        best = &token;
      }
    }
    if (best != nullptr) matches.push_back({at, best->text.size(), best->id});
    at += best == nullptr ? 1 : best->text.size();
  }
  return Describe(matches);
}

TEST(TokenMatcherTest, AgreesWithThePlainDefinition) {
  std::mt19937 random(5);
  const auto text_of = [&](size_t most) {
    std::string text;
    for (size_t n = random() % (most + 1); n > 0; --n) text += "ab\xFF"[random() % 3];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    std::vector<Token> tokens;
    for (uint32_t n = random() % 12; n > 0; --n)
      tokens.push_back({text_of(6), static_cast<int32_t>(random() % 50), Set(random() % 2)});
    const TokenMatcher matcher = BuildOrDie(tokens);
    for (int i = 0; i < 20; ++i) {
      const std::string text = text_of(60);
      for (const Set set : {TokenMatcher::kAnyText, TokenMatcher::kTrustedText})
        ASSERT_EQ(FindAll(matcher, text, set), FindPlainly(tokens, text, set)) << text;
    }
  }
}

uint64_t StepsPerByte(const TokenMatcher& matcher, const std::string& text) {
  std::vector<TokenMatcher::Match> matches;
  const uint64_t steps = matcher.FindAll(TokenMatcher::kAnyText, text, 0, text.size(), &matches);
  return (steps + text.size() - 1) / text.size();
}

// A walk down a trie from each place of these texts takes 4,000 steps a byte, and so does a search
// that goes back to the end of each match.
TEST(TokenMatcherTest, TakesTwoStepsAByteWhateverTheTokensAre) {
  const std::string prefix(4000, 'a');
  std::vector<std::string> texts;
  for (int i = 0; i < 220; ++i) texts.push_back(prefix + "x" + std::to_string(i));
  const std::string runs(100'000, 'a');
  std::string broken;
  while (broken.size() < 100'000) broken += prefix + "x9" + prefix.substr(0, 100) + "y";
  for (const char* more : {"", "a", "aa", "x"}) {
    texts.push_back(more);
    const TokenMatcher matcher = BuildOrDie(AnyText(texts));
    EXPECT_LE(StepsPerByte(matcher, runs), 2u) << more;
    EXPECT_LE(StepsPerByte(matcher, broken), 2u) << more;
  }
  std::vector<std::string> suffixes;
  for (int i = 0; i < 220; ++i) suffixes.push_back(std::to_string(i) + "x" + prefix);
  EXPECT_LE(StepsPerByte(BuildOrDie(AnyText(suffixes)), runs), 2u);
}

TEST(TokenMatcherTest, ItsMemoryIsBounded) {
  std::mt19937 random(1);
  std::vector<std::string> texts(TokenMatcher::kMostNodes / 4096 + 1);
  for (std::string& text : texts) {
    for (int i = 0; i < 4096; ++i) text += static_cast<char>(random());
  }
  TokenMatcher matcher;
  for (const std::string& text : texts) matcher.Add(text, 1, TokenMatcher::kAnyText);
  const absl::Status status = matcher.Build();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 8388608"));
}

}  // namespace
}  // namespace inlay
