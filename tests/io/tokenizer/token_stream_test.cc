// Texts that come in pieces give the tokens that they give whole.
#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/utf8.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/gguf/gguf.h"
#include "io/tokenizer/load_tokenizer.h"
#include "io/tokenizer/tokenizer.h"
#include "tests/io/tokenizer/test_vocabulary.h"
#include "tests/io/tokenizer/vocab_data.h"

namespace inlay {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Tokenizer> LoadFile(const std::string& path) {
  const absl::StatusOr<GgufFile> file = GgufFile::Open(path);
  EXPECT_TRUE(file.ok()) << file.status();
  auto tokenizer = LoadTokenizer(*file);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return *std::move(tokenizer);
}

EncodeOptions Special(bool parse_special) {
  EncodeOptions options;
  options.parse_special = parse_special;
  return options;
}

// Several texts, one after the other through one stream that looks for tokens each `piece` bytes.
std::vector<std::vector<int32_t>> EncodeInPieces(const Tokenizer& tokenizer,
                                                 const std::vector<std::string>& texts,
                                                 const EncodeOptions& options, size_t piece,
                                                 std::mt19937& random) {
  const auto stream = tokenizer.StartEncoding(options, piece);
  EXPECT_TRUE(stream.ok()) << stream.status();
  std::vector<std::vector<int32_t>> all;
  for (absl::string_view text : texts) {
    std::vector<int32_t> ids;
    while (!text.empty()) {
      const size_t n = std::min<size_t>(1 + random() % (2 * piece), text.size());
      EXPECT_TRUE((*stream)->Push(text.substr(0, n), &ids).ok());
      text.remove_prefix(n);
    }
    EXPECT_TRUE((*stream)->Finish(&ids).ok());
    all.push_back(ids);
  }
  return all;
}

void ExpectTheSame(const Tokenizer& tokenizer, const std::vector<std::string>& texts,
                   const EncodeOptions& options, size_t piece, std::mt19937& random) {
  const auto all = EncodeInPieces(tokenizer, texts, options, piece, random);
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto whole = tokenizer.Encode(texts[i], options);
    ASSERT_TRUE(whole.ok());
    ASSERT_EQ(all[i], *whole) << "pieces of " << piece << ": " << absl::CHexEscape(texts[i]);
  }
}

class TokenStreamTest : public ::testing::TestWithParam<std::string> {};

TEST_P(TokenStreamTest, GivesTheTokensOfTheWhole) {
  const auto tokenizer = LoadFile("tests/golden/vocab/" + GetParam() + ".gguf");
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (const TextWithIds& item : ReadTexts(GetParam())) texts.push_back(item.text);
  std::string joined;
  for (const std::string& text : texts) joined += text;
  for (const size_t piece : {1, 2, 3, 7, 30, 500}) {
    for (const bool special : {false, true})
      ExpectTheSame(*tokenizer, texts, Special(special), piece, random);
  }
  ExpectTheSame(*tokenizer, {joined, "", joined}, {}, 1000, random);
}

INSTANTIATE_TEST_SUITE_P(All, TokenStreamTest,
                         ::testing::Values("llama-spm", "gpt-2", "gpt-neox", "refact"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Every set of rules, with special tokens that overlap words and each other.
TEST(TokenStreamRulesTest, GiveTheTokensOfTheWhole) {
  std::mt19937 random(4);
  for (const char* rules : {"spm", "gpt-2", "refact", "dbrx", "llama-bpe", "default"}) {
    const bool spm = std::string(rules) == "spm";
    TestVocabulary vocabulary = spm ? SpmBase() : BpeBase(rules);
    if (spm) {
      for (const char* text : {"a", "b", "ab", "aa", "1", "11"}) vocabulary.Add(text, 1, -1);
    } else {
      vocabulary.Add("ab", 1);
      vocabulary.merges = {{"a b"}};
    }
    for (const char* text : {"<t>", "<t>>", "b<", "11111111", "  \n", "\xE2\x80\x94\xE2"})
      vocabulary.Add(text, 4);
    const auto tokenizer = vocabulary.Load();
    ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
    const std::vector<std::string> parts = {"a",        "b",           " ",
                                            "  ",       "\n",          "\r\n",
                                            "1",        "12",          "'s",
                                            "'LL",      "<t>",         "<",
                                            ">",        "!",           "\xE2\x80\x94",
                                            ".",        "\xC3\xA9",    "\xFF",
                                            "$",        "</s>",        "\xE2",
                                            "aab",      "\xD9\xA1",    "\xF0\x9F\x98\x80",
                                            "11111111", "\xE3\x80\x80"};
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      for (uint32_t n = random() % 24; n > 0; --n) text += parts[random() % parts.size()];
      ExpectTheSame(**tokenizer, {text}, Special(random() % 2 == 0), 1 + random() % 12, random);
      if (HasFailure()) return;
    }
  }
}

// Control tokens where they are trusted, and between them the tokens of all the text at once.
TEST(MarkedTextTest, TrustDecidesAboutControlTokensAlone) {
  std::mt19937 random(8);
  for (const char* rules : {"spm", "dbrx"}) {
    const bool spm = std::string(rules) == "spm";
    TestVocabulary vocabulary = spm ? SpmBase() : BpeBase(rules);
    const std::string control = spm ? "</s>" : "<|endoftext|>";
    vocabulary.Add("<t>", 4);
    vocabulary.Add("ab", 1);
    if (!spm) vocabulary.merges = {{"a b"}};
    vocabulary.flags = {{"add_bos_token", spm}};
    const auto tokenizer = *vocabulary.Load();
    const int32_t id = *tokenizer->FindSpecial(control);
    const std::vector<std::string> parts = {"a", "b", " ", "<", "t>", "<t>", "x>", control};
    for (int round = 0; round < 3000; ++round) {
      std::string text, rest;
      std::vector<TrustRun> runs;
      std::vector<int32_t> expected;
      if (spm) expected.push_back(*tokenizer->bos());
      const auto flush = [&] {
        const auto more = tokenizer->Encode(rest, {.add_bos = false});
        expected.insert(expected.end(), more->begin(), more->end());
        rest.clear();
      };
      for (uint32_t n = random() % 12; n > 0; --n) {
        const std::string& part = parts[random() % parts.size()];
        const bool trusted = random() % 2 == 0;
        text += part;
        runs.push_back({.end = text.size(), .trusted = trusted});
        if (trusted && part == control) {
          flush();
          expected.push_back(id);
        } else {
          rest += part;
        }
      }
      flush();
      ASSERT_EQ(*tokenizer->EncodeMarked(text, runs), expected) << absl::CHexEscape(text);
      const std::vector<TrustRun> all = {{.end = text.size(), .trusted = true}};
      ASSERT_EQ(*tokenizer->EncodeMarked(text, all), *tokenizer->Encode(text, Special(true)));
      ASSERT_EQ(*tokenizer->EncodeMarked(text, {}), *tokenizer->Encode(text, Special(false)));
    }
  }
}

// Words end where two characters stand in no token together, so nobody has to wait for a space.
TEST(TokenStreamRulesTest, CutsTextsWithoutSpaces) {
  const auto tokenizer = LoadFile("tests/golden/vocab/llama-spm.gguf");
  const auto stream = tokenizer->StartEncoding({});
  std::mt19937 random(6);
  std::string text;
  while (text.size() < 5 * TokenStream::kPiece)
    AppendUtf8(0x4E00 + static_cast<char32_t>(random() % 2000), &text);
  std::vector<int32_t> ids;
  ASSERT_TRUE((*stream)->Push(text, &ids).ok());
  const size_t before_the_end = ids.size();
  ASSERT_TRUE((*stream)->Finish(&ids).ok());
  EXPECT_GT(before_the_end, ids.size() / 2);
  EXPECT_EQ(tokenizer->Decode(ids), text);
}

// How many bytes go in before the stream gives up.
size_t PushedUntilRefused(const Tokenizer& tokenizer, absl::string_view piece) {
  EncodeOptions options;
  options.max_tokens = 100;
  const auto stream = tokenizer.StartEncoding(options);
  std::vector<int32_t> ids;
  absl::Status status;
  size_t pushed = 0;
  for (; status.ok() && pushed < (8 << 20); pushed += piece.size())
    status = (*stream)->Push(piece, &ids);
  EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("more than 100 tokens"));
  return pushed;
}

TEST(TokenStreamRulesTest, GivesUpOnceThereAreTooManyTokens) {
  const auto bard = LoadFile("models/bard.gguf");
  EXPECT_LT(PushedUntilRefused(*bard, "To be, or not to be. "), 2 * TokenStream::kPiece);
  // The same for a word without end, of which no token is certain.
  EXPECT_LT(PushedUntilRefused(*bard, "oooooooooooooooooooo"), 2 * TokenStream::kPiece);
  // And for marks without end, which a later one may be put before.
  EXPECT_LT(PushedUntilRefused(**BpeBase("qwen35").Load(), "\xCC\x81"), 2 * TokenStream::kPiece);
}

// Each character has three bytes and becomes one of one.
TEST(TokenStreamRulesTest, KeepsTextsThatShrinkToFewEnoughTokens) {
  TestVocabulary vocabulary = BpeBase("qwen35");
  vocabulary.merges.emplace();
  for (std::string text = "K"; text.size() < 16; text += text) {
    vocabulary.merges->push_back(text + " " + text);
    vocabulary.Add(text + text, 1);
  }
  const auto tokenizer = vocabulary.Load();
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EncodeOptions options;
  options.max_tokens = 100;
  const auto stream = (*tokenizer)->StartEncoding(options, /*piece=*/1);
  std::vector<int32_t> ids;
  for (int i = 0; i < 100 * 16; ++i) ASSERT_TRUE((*stream)->Push("\xE2\x84\xAA", &ids).ok()) << i;
  ASSERT_TRUE((*stream)->Finish(&ids).ok());
  EXPECT_EQ(ids.size(), 100u);
}

}  // namespace
}  // namespace inlay
