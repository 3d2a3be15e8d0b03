#include "io/tokenizer/pre_tokenizer.h"

#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/tokenizer/unicode_classes.h"

namespace inlay {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Words(PreTokenizer rules, const std::string& text) {
  std::vector<std::string> words;
  SplitWords(rules, text, /*last=*/true, [&](absl::string_view word) { words.emplace_back(word); });
  return words;
}

std::vector<std::string> Gpt2(const std::string& text) { return Words(PreTokenizer::kGpt2, text); }
std::vector<std::string> SingleDigits(const std::string& text) {
  return Words(PreTokenizer::kSingleDigits, text);
}
std::vector<std::string> Llama3(const std::string& text) {
  return Words(PreTokenizer::kLlama3, text);
}
std::vector<std::string> Qwen2(const std::string& text) {
  return Words(PreTokenizer::kQwen2, text);
}
std::vector<std::string> Qwen35(const std::string& text) {
  return Words(PreTokenizer::kQwen35, text);
}
std::vector<std::string> Unnamed(const std::string& text) {
  return Words(PreTokenizer::kUnnamed, text);
}

TEST(PreTokenizerTest, Gpt2) {
  EXPECT_THAT(Gpt2(""), ElementsAre());
  EXPECT_THAT(Gpt2("I'll say it's 1234!"),
              ElementsAre("I", "'ll", " say", " it", "'s", " 1234", "!"));
  EXPECT_THAT(Gpt2("I'LL"), ElementsAre("I", "'", "LL"));
  EXPECT_THAT(Gpt2("'sable 'x"), ElementsAre("'s", "able", " '", "x"));
  EXPECT_THAT(Gpt2("a   b"), ElementsAre("a", "  ", " b"));
  EXPECT_THAT(Gpt2("a \n b"), ElementsAre("a", " \n", " b"));
  EXPECT_THAT(Gpt2("a\nb"), ElementsAre("a", "\n", "b"));
  EXPECT_THAT(Gpt2("a\n\nb"), ElementsAre("a", "\n", "\n", "b"));
  EXPECT_THAT(Gpt2("a \t "), ElementsAre("a", " \t "));
  EXPECT_THAT(Gpt2("x ..."), ElementsAre("x", " ..."));
  // Letters with a combining mark, which is none; a no-break space is a space.
  EXPECT_THAT(Gpt2("e\xCC\x81t"), ElementsAre("e", "\xCC\x81", "t"));
  EXPECT_THAT(Gpt2("a\xC2\xA0\xC2\xA0z"), ElementsAre("a", "\xC2\xA0", "\xC2\xA0", "z"));
  EXPECT_THAT(Gpt2("\xFF\xFE!a"), ElementsAre("\xFF\xFE!", "a"));
}

TEST(PreTokenizerTest, SingleDigits) {
  EXPECT_THAT(SingleDigits("a 12b"), ElementsAre("a", " ", "1", "2", "b"));
  EXPECT_THAT(SingleDigits("a  1"), ElementsAre("a", "  ", "1"));
  EXPECT_THAT(SingleDigits("\xC2\xBD"
                           "3"),
              ElementsAre("\xC2\xBD", "3"));
  EXPECT_THAT(SingleDigits("it's ok"), ElementsAre("it", "'s", " ok"));
}

TEST(PreTokenizerTest, Llama3) {
  EXPECT_THAT(Llama3("I'LL SAY it's"), ElementsAre("I", "'LL", " SAY", " it", "'s"));
  EXPECT_THAT(Llama3("1234567 89"), ElementsAre("123", "456", "7", " ", "89"));
  EXPECT_THAT(Llama3("\tfoo(bar)"), ElementsAre("\tfoo", "(bar", ")"));
  EXPECT_THAT(Llama3("a !!\n\nb"), ElementsAre("a", " !!\n\n", "b"));
  EXPECT_THAT(Llama3("a  \n  b"), ElementsAre("a", "  \n", " ", " b"));
  EXPECT_THAT(Llama3("a \r\n\r\n"), ElementsAre("a", " \r\n\r\n"));
  EXPECT_THAT(Llama3("a   "), ElementsAre("a", "   "));
  EXPECT_THAT(Llama3("a   1"), ElementsAre("a", "  ", " ", "1"));
  EXPECT_THAT(Llama3("\nfoo"), ElementsAre("\n", "foo"));
  EXPECT_THAT(Llama3("x='y'"), ElementsAre("x", "='", "y", "'"));
}

TEST(PreTokenizerTest, Qwen2) {
  EXPECT_THAT(Qwen2("I'LL SAY 2026's"),
              ElementsAre("I", "'LL", " SAY", " ", "2", "0", "2", "6", "'s"));
  EXPECT_THAT(Qwen2("\tfoo(bar) !!\n\nb"), ElementsAre("\tfoo", "(bar", ")", " !!\n\n", "b"));
  EXPECT_THAT(Qwen2("a   1  \n  b"), ElementsAre("a", "  ", " ", "1", "  \n", " ", " b"));
  // A mark is no letter.
  EXPECT_THAT(Qwen2("e\xCC\x81t!"), ElementsAre("e", "\xCC\x81t", "!"));
  EXPECT_THAT(Qwen2("e\xCC\x81\xCC\x81!"), ElementsAre("e", "\xCC\x81\xCC\x81!"));
}

TEST(PreTokenizerTest, Qwen35) {
  EXPECT_THAT(Qwen35("I'LL SAY 2026's"),
              ElementsAre("I", "'LL", " SAY", " ", "2", "0", "2", "6", "'s"));
  EXPECT_THAT(Qwen35("\tfoo(bar) !!\n\nb"), ElementsAre("\tfoo", "(bar", ")", " !!\n\n", "b"));
  EXPECT_THAT(Qwen35("a   1  \n  b"), ElementsAre("a", "  ", " ", "1", "  \n", " ", " b"));
  // A combining acute accent belongs to letters, also at the start of a word and of the text.
  EXPECT_THAT(Qwen35("e\xCC\x81t!"), ElementsAre("e\xCC\x81t", "!"));
  EXPECT_THAT(Qwen35("\xCC\x81t \xCC\x81"), ElementsAre("\xCC\x81t", " \xCC\x81"));
  EXPECT_THAT(Qwen35("!\xCC\x81.."), ElementsAre("!\xCC\x81", ".."));
  EXPECT_THAT(Qwen35("1\xCC\x81"), ElementsAre("1", "\xCC\x81"));
  // Thai vowels above their consonants are marks: sawatdi.
  EXPECT_THAT(Qwen35("\xE0\xB8\xAA\xE0\xB8\xA7\xE0\xB8\xB1\xE0\xB8\xAA"),
              ElementsAre("\xE0\xB8\xAA\xE0\xB8\xA7\xE0\xB8\xB1\xE0\xB8\xAA"));
}

TEST(PreTokenizerTest, Unnamed) {
  EXPECT_THAT(Unnamed("it's $5."), ElementsAre("it", "'", "s", " ", "$", "5", "."));
  EXPECT_THAT(Unnamed("12345 678"), ElementsAre("123", "45", " ", "678"));
  EXPECT_THAT(Unnamed("a\xE2\x82\xAC \xE2\x82\xAC"),
              ElementsAre("a", "\xE2\x82\xAC", " \xE2\x82\xAC"));
  EXPECT_THAT(Unnamed("\xE0\xA5\xA7"
                      "123"),
              ElementsAre("\xE0\xA5\xA7", "123"));
}

TEST(PreTokenizerTest, WordsAreTheWholeText) {
  std::mt19937 random(3);
  const std::vector<std::string> parts = {" ",
                                          "\n",
                                          "\r",
                                          "\t",
                                          "a",
                                          "Z",
                                          "'",
                                          "s",
                                          "LL",
                                          "7",
                                          "!",
                                          "$",
                                          "\xC3\xA9",
                                          "\xC2\xA0",
                                          "\xE0\xA5\xA7",
                                          "\xCC\x81",
                                          "\xFF",
                                          "\xE6\x9D\xB1",
                                          "\xF0\x9F\xA6\x99",
                                          "\xE3\x80\x80"};
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (uint32_t i = 0; i < random() % 12; ++i) text += parts[random() % parts.size()];
    for (const PreTokenizer rules :
         {PreTokenizer::kGpt2, PreTokenizer::kSingleDigits, PreTokenizer::kLlama3,
          PreTokenizer::kQwen2, PreTokenizer::kQwen35, PreTokenizer::kUnnamed}) {
      std::string joined;
      for (const std::string& word : Words(rules, text)) {
        ASSERT_FALSE(word.empty());
        joined += word;
      }
      ASSERT_EQ(joined, text);
    }
  }
}

TEST(PreTokenizerTest, NamesOfFiles) {
  ASSERT_NE(FindPreTokenizer("lfm2"), nullptr);
  EXPECT_EQ(FindPreTokenizer("lfm2")->rules, PreTokenizer::kLlama3);
  ASSERT_NE(FindPreTokenizer("dbrx"), nullptr);
  EXPECT_EQ(FindPreTokenizer("dbrx")->rules, PreTokenizer::kLlama3);
  EXPECT_FALSE(FindPreTokenizer("dbrx")->whole_words_first);
  EXPECT_TRUE(FindPreTokenizer("llama-bpe")->whole_words_first);
  EXPECT_EQ(FindPreTokenizer("qwen2")->rules, PreTokenizer::kQwen2);
  EXPECT_EQ(FindPreTokenizer("qwen35")->rules, PreTokenizer::kQwen35);
  EXPECT_FALSE(FindPreTokenizer("qwen35")->adds_bos);
  EXPECT_EQ(FindPreTokenizer("mpt")->rules, PreTokenizer::kGpt2);
  EXPECT_EQ(FindPreTokenizer(""), nullptr);
}

TEST(UnicodeClassesTest, KnowsTheCorners) {
  EXPECT_EQ(ClassOf('a'), CodePointClass::kLetter);
  EXPECT_EQ(ClassOf('_'), CodePointClass::kPunctuation);
  EXPECT_EQ(ClassOf('$'), CodePointClass::kOther);
  EXPECT_EQ(ClassOf(0), CodePointClass::kOther);
  EXPECT_EQ(ClassOf(0x1C), CodePointClass::kOther);  // a separator, but not white space
  EXPECT_EQ(ClassOf(0x85), CodePointClass::kSpace);
  EXPECT_EQ(ClassOf(0x3000), CodePointClass::kSpace);
  EXPECT_EQ(ClassOf(0x200B), CodePointClass::kOther);
  EXPECT_EQ(ClassOf(0xBD), CodePointClass::kNumber);    // one half
  EXPECT_EQ(ClassOf(0x2163), CodePointClass::kNumber);  // Roman numeral four
  EXPECT_EQ(ClassOf(0x4FF), CodePointClass::kLetter);   // the last one of the quick table
  EXPECT_EQ(ClassOf(0x500), CodePointClass::kLetter);
  EXPECT_EQ(ClassOf(0x1F600), CodePointClass::kOther);
  EXPECT_EQ(ClassOf(0x10FFFF), CodePointClass::kOther);
  EXPECT_EQ(ClassOf(0x301), CodePointClass::kMark);   // Mn
  EXPECT_EQ(ClassOf(0x903), CodePointClass::kMark);   // Mc
  EXPECT_EQ(ClassOf(0x20DD), CodePointClass::kMark);  // Me
}

}  // namespace
}  // namespace inlay
