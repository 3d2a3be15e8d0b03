#include "base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace inlay {
namespace {

TEST(Utf8Test, EveryCodePointThereAndBack) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, &text);
    const CodePoint decoded = DecodeUtf8(text);
    ASSERT_TRUE(decoded.valid) << static_cast<uint32_t>(c);
    ASSERT_EQ(decoded.value, c);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8Test, IllFormedStretches) {
  const auto length_of_bad = [](const std::string& text) {
    const CodePoint c = DecodeUtf8(text);
    EXPECT_FALSE(c.valid);
    EXPECT_EQ(c.value, kReplacementCharacter);
    return c.length;
  };
  EXPECT_EQ(length_of_bad("\x80"), 1u);
  EXPECT_EQ(length_of_bad("\xC0\x80"), 1u);          // overlong
  EXPECT_EQ(length_of_bad("\xE0\x80\x80"), 1u);      // overlong
  EXPECT_EQ(length_of_bad("\xED\xA0\x80"), 1u);      // surrogate
  EXPECT_EQ(length_of_bad("\xF4\x90\x80\x80"), 1u);  // beyond U+10FFFF
  EXPECT_EQ(length_of_bad("\xF5"), 1u);
  EXPECT_EQ(length_of_bad("\xE2\x82"), 2u);  // cut off
  EXPECT_EQ(length_of_bad("\xE2\x82x"), 2u);
  EXPECT_EQ(length_of_bad("\xF0\x9F\xA6"), 3u);
  EXPECT_TRUE(IsValidUtf8("na\xC3\xAFve"));
  EXPECT_FALSE(IsValidUtf8("na\xC3"));
}

TEST(Utf8Test, IncompleteTail) {
  EXPECT_EQ(IncompleteUtf8Tail(""), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("abc"), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("a\xC3"), 1u);
  EXPECT_EQ(IncompleteUtf8Tail("a\xC3\xA9"), 0u);
  EXPECT_EQ(IncompleteUtf8Tail("\xE2\x82"), 2u);
  EXPECT_EQ(IncompleteUtf8Tail("\xF0\x9F\xA6"), 3u);
  EXPECT_EQ(IncompleteUtf8Tail("\xED\xA0"), 0u);  // no byte can mend that
  EXPECT_EQ(IncompleteUtf8Tail("\xFF"), 0u);
}

}  // namespace
}  // namespace inlay
