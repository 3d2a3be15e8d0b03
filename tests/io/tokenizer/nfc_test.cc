#include "io/tokenizer/nfc.h"

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "gtest/gtest.h"

namespace inlay {
namespace {

std::string Normalized(const std::string& text) {
  NfcStream stream;
  std::string out;
  stream.Push(text, &out);
  stream.Finish(&out);
  EXPECT_EQ(stream.held(), 0u);
  return out;
}

std::string Utf8(const std::u32string& text) {
  std::string out;
  for (const char32_t c : text) AppendUtf8(c, &out);
  return out;
}

TEST(NfcTest, JoinsAndOrders) {
  // As unicodedata.normalize("NFC", ...) of Python has them.
  const std::vector<std::pair<std::u32string, std::u32string>> cases = {
      {U"", U""},
      {U"plain \x7F", U"plain \x7F"},
      {U"e\u0301t\u0065\u0301", U"\u00E9t\u00E9"},
      {U"\u00E9", U"\u00E9"},
      {U"Vie\u0323\u0302t", U"Vi\u1EC7t"},  // both marks, one after the other
      {U"Vie\u0302\u0323t", U"Vi\u1EC7t"},  // and in the other order
      {U"\u00EA\u0323", U"\u1EC7"},         // of a letter that has one already
      {U"a\u0315\u0300\u05AE\u0062", U"\u00E0\u05AE\u0315\u0062"},
      {U"\u212B\u2126\u1F71", U"\u00C5\u03A9\u03AC"},  // one character for another
      {U"\u0958", U"\u0915\u093C"},                    // never composed
      {U"\u0344", U"\u0308\u0301"},
      {U"\u1100\u1161\u11A8", U"\uAC01"},  // Hangul
      {U"\uAC00\u11A8\u11A8", U"\uAC01\u11A8"},
      {U"\u1100\u1161\u11A7", U"\uAC00\u11A7"},  // the place before the first trail
      {U"\uAC01\u11A8", U"\uAC01\u11A8"},
      {U"\u0B47\u0300\u0B3E", U"\u0B47\u0300\u0B3E"},  // blocked by the mark between them
      {U"\u0B47\u0B3E", U"\u0B4B"},
      {U"a\u0301\u0301", U"\u00E1\u0301"},
      {U"\u0301a", U"\u0301a"},
      {U"\U0001D15E", U"\U0001D157\U0001D165"},
      {U"\U0002F800\u4E3D", U"\u4E3D\u4E3D"},
      {U"\u0438\u0306\u0306 \u6F22\u5B57", U"\u0439\u0306 \u6F22\u5B57"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(Normalized(Utf8(text)), Utf8(expected)) << Utf8(text);
    EXPECT_EQ(Normalized(Utf8(expected)), Utf8(expected)) << Utf8(text);
  }
}

TEST(NfcTest, ATextShrinksByAFactorAtMost) {
  const auto expect = [](const std::string& text) {
    EXPECT_GE(Normalized(text).size() * NfcStream::kMostShrink, text.size()) << text;
  };
  for (char32_t c = 0; c < 0x30000; ++c) {  // all that change
    if (c < 0xD800 || c > 0xDFFF) expect(Utf8({c}));
  }
  EXPECT_EQ(Normalized(Utf8(U"\u1FBE\u0308\u0301")), Utf8(U"\u0390"));
  for (const char32_t* const text :
       {U"\u1FBE\u0308\u0301", U"\u2126\u0313\u0300\u0345", U"\u1100\u1161\u11A8"})
    expect(Utf8(text));
}

TEST(NfcTest, BytesThatAreNoTextStay) {
  EXPECT_EQ(Normalized("\xFF\xCC\x81 e\xCC"), "\xFF\xCC\x81 e\xCC");
  EXPECT_EQ(Normalized("e\xCC\x81\x80\xED\xA0\x80"), "\xC3\xA9\x80\xED\xA0\x80");
  EXPECT_EQ(Normalized("e\xC3\xCC\x81"), "e\xC3\xCC\x81");
}

TEST(NfcTest, WhereThePartsEndDoesNotMatter) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"a",
                                          "e",
                                          " ",
                                          "\xCC\x81",
                                          "\xCC\xA3",
                                          "\xCC\x82",
                                          "\xE1\x84\x80",
                                          "\xE1\x85\xA1",
                                          "\xE1\x86\xA8",
                                          "\xEA\xB0\x80",
                                          "\xF0\x9D\x85\x9E",
                                          "\xF0\x9F\x98\x80",
                                          "\xFF",
                                          "\xCC",
                                          "\xE1"};
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
    NfcStream stream;
    std::string out;
    for (size_t at = 0; at < text.size();) {
      const size_t n = std::min<size_t>(1 + random() % 4, text.size() - at);
      stream.Push({text.data() + at, n}, &out);
      at += n;
    }
    stream.Finish(&out);
    ASSERT_EQ(out, Normalized(text)) << testing::PrintToString(text);
    ASSERT_EQ(Normalized(out), out);
  }
}

TEST(NfcTest, HoldsOnlyWhatMarksMayFollow) {
  NfcStream stream;
  std::string out;
  stream.Push("resume", &out);
  EXPECT_EQ(out, "resum");
  stream.Push("\xCC", &out);
  EXPECT_EQ(out, "resum");
  stream.Push("\x81", &out);
  EXPECT_EQ(out, "resum");
  EXPECT_EQ(stream.held(), 3u);
  stream.Push("s", &out);
  EXPECT_EQ(out, "resum\xC3\xA9");
  stream.Finish(&out);
  EXPECT_EQ(out, "resum\xC3\xA9s");
}

}  // namespace
}  // namespace inlay
