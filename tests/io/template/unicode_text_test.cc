#include "io/template/unicode_text.h"

#include <string>

#include "gtest/gtest.h"

namespace inlay::jinja {
namespace {

std::string InCase(char32_t c, Case to) {
  std::string out;
  AppendInCase(c, to, &out);
  return out;
}

TEST(UnicodeTextTest, ChangesCase) {
  EXPECT_EQ(InCase('a', Case::kUpper), "A");
  EXPECT_EQ(InCase('A', Case::kLower), "a");
  EXPECT_EQ(InCase('1', Case::kUpper), "1");
  EXPECT_EQ(InCase(U'é', Case::kUpper), "É");
  EXPECT_EQ(InCase(U'ÿ', Case::kUpper), "Ÿ");
  EXPECT_EQ(InCase(U'ā', Case::kUpper), "Ā");  // every second one of a run
  EXPECT_EQ(InCase(U'Ā', Case::kUpper), "Ā");
  EXPECT_EQ(InCase(U'ß', Case::kUpper), "SS");
  EXPECT_EQ(InCase(U'ß', Case::kTitle), "Ss");
  EXPECT_EQ(InCase(U'ǆ', Case::kTitle), "ǅ");
  EXPECT_EQ(InCase(U'ǆ', Case::kUpper), "Ǆ");
  EXPECT_EQ(InCase(U'İ', Case::kLower), "i̇");
  EXPECT_EQ(InCase(U'𐐨', Case::kUpper), "𐐀");
  EXPECT_EQ(InCase(U'中', Case::kUpper), "中");
}

TEST(UnicodeTextTest, KnowsCase) {
  EXPECT_TRUE(IsUpper('A') && IsLower('a') && IsUpper(U'É') && IsLower(U'ß') && IsUpper(U'İ'));
  EXPECT_FALSE(IsUpper('a') || IsLower('A') || IsUpper('1') || IsLower(U'中'));
}

TEST(UnicodeTextTest, KnowsWhatIsPrinted) {
  for (const char32_t c : std::u32string(U" a~éß中😀\u0301"))
    EXPECT_TRUE(IsPrintable(c)) << static_cast<uint32_t>(c);
  for (const char32_t c :
       {0x0, 0x1f, 0x7f, 0x80, 0xa0, 0xad, 0x200b, 0x2028, 0x202e, 0xe000, 0xfeff, 0x378, 0x10ffff})
    EXPECT_FALSE(IsPrintable(c)) << static_cast<uint32_t>(c);
}

TEST(UnicodeTextTest, FindsSpace) {
  EXPECT_EQ(LeadingSpace(" \t\xC2\xA0\xE3\x80\x80x "), 7u);
  EXPECT_EQ(TrailingSpace(" x\xE2\x80\x83\n\x1c"), 5u);
  EXPECT_EQ(TrailingSpace(" \n"), 2u);
  EXPECT_EQ(LeadingSpace("\xE2\x80\x8B "), 0u);  // of no width, and no space for Python
  EXPECT_EQ(LeadingSpace("\xff "), 0u);
  EXPECT_EQ(TrailingSpace(" \xff"), 0u);
  EXPECT_EQ(LineBreakSize("\r\n"), 2u);
  EXPECT_EQ(LineBreakSize("\n\r"), 1u);
  EXPECT_EQ(LineBreakSize("\xE2\x80\xA8"), 3u);
  EXPECT_EQ(LineBreakSize("\t"), 0u);
  EXPECT_EQ(LineBreakSize(""), 0u);
}

TEST(UnicodeTextTest, CountsCodePoints) {
  EXPECT_EQ(CountCodePoints("aé中😀"), 4u);
  EXPECT_EQ(CountCodePoints("a\xff\xe4\xb8"), 4u);  // bytes that are not UTF-8 count one each
  EXPECT_EQ(ByteOfCodePoint("aé中", 0), 0u);
  EXPECT_EQ(ByteOfCodePoint("aé中", 2), 3u);
  EXPECT_EQ(ByteOfCodePoint("aé中", 9), 6u);
  EXPECT_EQ(LastCodePointSize("a中"), 3u);
  EXPECT_EQ(LastCodePointSize("a\xb8"), 1u);
  EXPECT_EQ(LastCodePointSize(""), 0u);
}

}  // namespace
}  // namespace inlay::jinja
