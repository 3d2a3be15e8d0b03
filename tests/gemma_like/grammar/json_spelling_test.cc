#include "gemma_like/grammar/json_spelling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/utf8.h"

namespace inlay {
namespace {

bool Reads(absl::string_view spelling) {
  JsonSpellingReader::State state = JsonSpellingReader::kBetween;
  for (const char c : spelling) {
    const auto next = JsonSpellingReader::Next(state, static_cast<uint8_t>(c));
    if (!next.has_value()) return false;
    state = *next;
  }
  return state == JsonSpellingReader::kBetween;
}

TEST(JsonSpellingTest, EveryCharacterIsSpelledInOneWay) {
  for (char32_t c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 17) {
    if (c >= 0xD800 && c <= 0xDFFF) continue;
    std::string text;
    AppendUtf8(c, &text);
    const std::string spelling = JsonSpelling(text);
    ASSERT_EQ(nlohmann::json::parse(spelling).get<std::string>(), text);
    // As JSON.stringify does, nlohmann escapes only what must be.
    ASSERT_EQ(spelling, c == 0x7F ? "\"\x7F\"" : nlohmann::json(text).dump());
    ASSERT_TRUE(Reads(spelling.substr(1, spelling.size() - 2))) << spelling;
  }
}

TEST(JsonSpellingTest, OtherSpellingsAreNotRead) {
  for (const char* other :
       {"\\u0041", "\\/", "\\u0008", "\\u000d", "\\u001F", "\\x", "\\u002", "\"", "\n", "\xC0\x80",
        "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5", "\x80", "\\u0100", "\\U0000"}) {
    EXPECT_FALSE(Reads(other)) << other;
  }
}

}  // namespace
}  // namespace inlay
