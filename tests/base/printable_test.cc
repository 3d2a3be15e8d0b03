// What is shown of text that a file brought.
#include "base/printable.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/plural.h"
#include "base/utf8.h"
#include "io/gguf/gguf_value.h"

namespace inlay {
namespace {

std::string Utf8(char32_t c) {
  std::string text;
  AppendUtf8(c, &text);
  return text;
}

TEST(Printable, LeavesTextAsItIs) {
  for (const char* text :
       {"", "To be,\n\tor not", "\u00e9cole \u043b\u0438\u0440", "a\\nb 'c'",
        "\u05e9\u05dc\u05d5\u05dd", "\U0001F469\u200D\U0001F52C", "\u00a0\ufffd"})
    EXPECT_EQ(Printable(text), text);
}

TEST(Printable, EscapesWhatSteersATerminal) {
  EXPECT_EQ(Printable("\x1b[31mred\x07"), "\\u001b[31mred\\u0007");
  EXPECT_EQ(Printable("a\rb\bc\x7f"), "a\\u000db\\u0008c\\u007f");
  EXPECT_EQ(Printable(absl::string_view("\0", 1)), "\\u0000");
  EXPECT_EQ(Printable("\u009b31m"), "\\u009b31m");  // CSI in one character
  EXPECT_EQ(Printable("\u202egpj.exe\u2069"), "\\u202egpj.exe\\u2069");
}

// A byte that is C1 in an 8-bit terminal, and others that are no UTF-8.
TEST(Printable, EscapesBytesThatAreNoText) {
  EXPECT_EQ(Printable("\x9b"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(Printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(Printable("\xe2\x82 a"), "\\xe2\\x82 a");       // a character cut short
  EXPECT_EQ(Printable("\xc0\x9b"), "\\xc0\\x9b");           // an overlong form
  EXPECT_EQ(Printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

// Of every character, and of every byte alone: the result holds no control character but newline
// and tab, and is UTF-8.
TEST(Printable, IsSafeWhateverTheInput) {
  const auto expect_safe = [](const std::string& text) {
    std::string shown = Printable(text);
    ASSERT_TRUE(IsValidUtf8(shown));
    for (absl::string_view rest = shown; !rest.empty();
         rest.remove_prefix(DecodeUtf8(rest).length)) {
      const char32_t c = DecodeUtf8(rest).value;
      ASSERT_TRUE(c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7F) || c >= 0xA0) << shown;
    }
  };
  for (char32_t c = 0; c < 0x3000; ++c) expect_safe(Utf8(c));
  for (int byte = 0; byte < 256; ++byte) {
    expect_safe(std::string(1, static_cast<char>(byte)));
    expect_safe(std::string("\xe2") + static_cast<char>(byte));
  }
}

TEST(PrintableName, IsOneUnambiguousLine) {
  EXPECT_EQ(PrintableName("blk.0.attn_q.weight"), "blk.0.attn_q.weight");
  EXPECT_EQ(PrintableName("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(PrintableName("a\\nb"), "a\\\\nb");
  EXPECT_EQ(PrintableName("\x1b]0;title\x07"), "\\u001b]0;title\\u0007");
  EXPECT_EQ(PrintableName("\u202e\x9b"), "\\u202e\\x9b");
}

TEST(QuoteForMessage, IsPrintableAndShort) {
  EXPECT_EQ(QuoteForMessage("a\nb\x1b\u009b"), "'a\\nb\\u001b\\u009b'");
  // Cut between characters, not inside one.
  const std::string snow = "\u2603";
  std::string long_text = "x";
  while (long_text.size() < 100) long_text += snow;
  EXPECT_EQ(QuoteForMessage(long_text), "'" + long_text.substr(0, 79) + "...'");
}

TEST(Plural, AgreesWithTheCount) {
  EXPECT_EQ(Plural(0, "token"), "0 tokens");
  EXPECT_EQ(Plural(1, "token"), "1 token");
  EXPECT_EQ(Plural(2, "token"), "2 tokens");
}

}  // namespace
}  // namespace inlay
