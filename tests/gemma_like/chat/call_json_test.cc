#include "gemma_like/chat/call_json.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <string>

#include "nlohmann/json.hpp"

namespace inlay {
namespace {

// The text with another backslash before each that begins no escape.
std::string Mended(const std::string& text) {
  static const std::regex kBackslash(R"(\\(u[0-9a-fA-F]{4}|["\\/bfnrt])?)");
  std::string mended;
  auto at = text.begin();
  for (std::sregex_iterator i(text.begin(), text.end(), kBackslash); i != std::sregex_iterator();
       ++i) {
    mended.append(at, (*i)[0].first);
    mended += (*i)[1].matched ? i->str() : "\\\\";
    at = (*i)[0].second;
  }
  return mended.append(at, text.end());
}

// As another parser has it.
void ExpectSame(const std::string& text) {
  std::string out = "x";
  const std::string mended = Mended(text);
  EXPECT_EQ(AppendJsonValue(text, &out), nlohmann::json::accept(mended)) << text;
  if (out == "x") return;
  const auto value = nlohmann::json::parse(out.substr(1), nullptr, /*allow_exceptions=*/false);
  EXPECT_EQ(value, nlohmann::json::parse(mended, nullptr, /*allow_exceptions=*/false)) << text;
}

TEST(CallJsonTest, ReadsWhatIsJson) {
  for (const char* text : {"0",
                           "-0",
                           "10",
                           "01",
                           "-",
                           "1.",
                           ".5",
                           "1.5",
                           "1e5",
                           "1E+5",
                           "1e-",
                           "1e",
                           "+1",
                           "--1",
                           "true",
                           "tru",
                           "truee",
                           "null",
                           "None",
                           "nul",
                           "\"\"",
                           "\"a",
                           "\"\\n\\\"\\/\\u00e9\"",
                           "\"\\x\"",
                           "\"\\u12g4\"",
                           "\"\\u12\"",
                           "\"\\u\\n\\.\"",
                           "{\"\\d\": 1}",
                           "\"\\ud83d\\ude00\"",
                           "\"\\ud83d\"",
                           "\"\\ud83dx\"",
                           "\"\\ud83d\\n\"",
                           "\"\\ude00\"",
                           "\"\\ud83d\\ud83d\"",
                           "[]",
                           "[1]",
                           "[1,]",
                           "[,]",
                           "[1 2]",
                           "[1, [2, {}]]",
                           "{}",
                           "{\"a\":1}",
                           "{\"a\" : 1 , \"b\":[]}",
                           "{\"a\":1,}",
                           "{a:1}",
                           "{\"a\"}",
                           "{1:2}",
                           "[}",
                           "]",
                           "",
                           " ",
                           " 1 ",
                           "1 2",
                           "[1]]",
                           "{\"a\":1]",
                           "[-]",
                           "[1.]",
                           "[0]",
                           "[00]"}) {
    ExpectSame(text);
  }
}

TEST(CallJsonTest, ReadsAnyTextAsItIs) {
  const std::string parts[] = {
      "{", "}",    "[",      "]",  "\"",    ":",       ",",       "1", "-",    ".",    "e",
      "0", "true", "\"a\":", "\\", "\\u12", "\\ud83d", "\\ude00", " ", "null", "\"b\""};
  std::mt19937 random(3);
  for (int i = 0; i < 200'000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 7; n > 0; --n) text += parts[random() % std::size(parts)];
    ExpectSame(text);
  }
}

TEST(CallJsonTest, EscapesControlCharactersAndLimitsDepth) {
  std::string out;
  EXPECT_TRUE(AppendJsonValue("[ \"a\n\t\r\x01\" ]", &out));
  EXPECT_EQ(out, "[ \"a\\n\\t\\r\\u0001\" ]");
  out.clear();
  AppendJsonString("a\n\"\\\x01\xFF\u00e9", &out);
  EXPECT_EQ(out, "\"a\\n\\\"\\\\\\u0001\uFFFD\u00e9\"");
  for (const size_t depth : {JsonScanner::kMostDepth, JsonScanner::kMostDepth + 1}) {
    out.clear();
    EXPECT_EQ(AppendJsonValue(std::string(depth, '[') + std::string(depth, ']'), &out),
              depth == JsonScanner::kMostDepth);
  }
}

}  // namespace
}  // namespace inlay
