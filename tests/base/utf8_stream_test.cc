#include "base/utf8_stream.h"

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

std::string Replacements(int count) {
  std::string out;
  for (int i = 0; i < count; ++i) AppendUtf8(kReplacementCharacter, &out);
  return out;
}

// What comes out of these pieces, each of which gives whole characters.
std::string Joined(const std::vector<absl::string_view>& pieces) {
  Utf8Stream stream;
  std::string joined;
  for (const absl::string_view piece : pieces) {
    const std::string out = stream.Push(piece);
    EXPECT_TRUE(IsValidUtf8(out));
    joined += out;
  }
  const std::string rest = stream.Flush();
  EXPECT_TRUE(IsValidUtf8(rest));
  return joined + rest;
}

// The same text for every way to cut the bytes in two or three, empty pieces included, and for
// single bytes.
void ExpectForEverySplit(absl::string_view bytes, const std::string& expected) {
  std::vector<absl::string_view> single;
  for (size_t i = 0; i <= bytes.size(); ++i) {
    for (size_t j = i; j <= bytes.size(); ++j) {
      EXPECT_EQ(Joined({bytes.substr(0, i), bytes.substr(i, j - i), bytes.substr(j)}), expected)
          << "cut at " << i << " and " << j;
    }
    single.push_back(bytes.substr(i, 1));
  }
  EXPECT_EQ(Joined(single), expected);
}

TEST(Utf8StreamTest, HoldsBackWhatIsIncomplete) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.Push("\xA6"), "");
  EXPECT_EQ(stream.Push("\x99"
                        "b"),
            "\xF0\x9F\xA6\x99"
            "b");
  EXPECT_EQ(stream.Flush(), "");
  EXPECT_EQ(stream.Push("\xC3"), "");
  EXPECT_EQ(stream.Push("x"),
            "\xEF\xBF\xBD"
            "x");
  EXPECT_EQ(stream.Push("\xFFy\xE2"),
            "\xEF\xBF\xBD"
            "y");
  EXPECT_EQ(stream.Flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.Flush(), "");
}

TEST(Utf8StreamTest, TextComesOutAsItIsWhereverItIsSplit) {
  ExpectForEverySplit("", "");
  // Characters of one to four bytes, and the first and last of each length.
  std::string text;
  for (char32_t c :
       {0x00, 0x61, 0x7F, 0x80, 0xE9, 0x7FF, 0x800, 0x20AC, 0xFFFF, 0x10000, 0x1F999, 0x10FFFF})
    AppendUtf8(c, &text);
  ExpectForEverySplit(text, text);
}

// The examples of the Unicode standard, version 15, section 3.9, tables 3-8 to 3-11. Each byte that
// begins no character, and each beginning of one that is not finished, becomes one U+FFFD.
TEST(Utf8StreamTest, EachIllFormedStretchBecomesOneReplacementWhereverItIsSplit) {
  ExpectForEverySplit("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41", Replacements(8) + "A");
  ExpectForEverySplit("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41", Replacements(8) + "A");
  ExpectForEverySplit("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42",
                      Replacements(5) + "A" + Replacements(2) + "B");
  ExpectForEverySplit("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41", Replacements(4) + "A");
}

TEST(Utf8StreamTest, HoldsBackTheBeginningOfOneCharacterAndNoMore) {
  for (char32_t c : {0xE9, 0x20AC, 0x1F999}) {
    std::string character;
    AppendUtf8(c, &character);
    Utf8Stream stream;
    for (size_t i = 0; i + 1 < character.size(); ++i)
      EXPECT_EQ(stream.Push(character.substr(i, 1)), "");
    EXPECT_EQ(stream.Push(character.substr(character.size() - 1) + "a"), character + "a");
    // What cannot become a character is given out at once.
    EXPECT_EQ(stream.Push(character.substr(0, character.size() - 1)), "");
    EXPECT_EQ(stream.Push("b"), Replacements(1) + "b");
    EXPECT_EQ(stream.Push("\xFF"), Replacements(1));
    EXPECT_EQ(stream.Flush(), "");
  }
}

TEST(Utf8StreamTest, AfterAFlushTheNextBytesBeginAnew) {
  Utf8Stream stream;
  EXPECT_EQ(stream.Push("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.Flush(), Replacements(1));
  EXPECT_EQ(stream.Flush(), "");
  EXPECT_EQ(stream.Push("\xA6\x99"), Replacements(2));
  EXPECT_EQ(stream.Push("b"), "b");
}

}  // namespace
}  // namespace inlay
