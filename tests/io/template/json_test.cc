// JSON as input (json_input.h) and as what the filter tojson writes (to_json.h).
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "io/template/json_input.h"
#include "io/template/limits.h"
#include "io/template/to_json.h"

namespace inlay::jinja {
namespace {

using testing::AllOf;
using testing::HasSubstr;

JsonStyle Style() {
  JsonStyle style;
  style.item_separator = Text(", ", Origin::kTemplate);
  style.key_separator = Text(": ", Origin::kTemplate);
  return style;
}

std::string Written(const absl::StatusOr<Value>& value, const JsonStyle& style = Style()) {
  if (!value.ok()) return std::string(value.status().message());
  Budget budget(Limits{});
  const auto text = ToJson(budget, *value, style);
  return std::string(text.ok() ? text->bytes() : text.status().message());
}

std::string Again(const std::string& json, const JsonStyle& style = Style()) {
  return Written(ParseJson(json), style);
}

TEST(JsonTest, ComesBack) {
  for (const std::string json : {"null",
                                 "true",
                                 "-5",
                                 "1.5",
                                 "1e+100",
                                 "\"\"",
                                 "[]",
                                 "{}",
                                 "[1, [2, {}], \"a\"]",
                                 "{\"b\": 1, \"a\": {\"c\": [null]}}",
                                 "\"\\\"\\\\\\n\\u0001é😀\\b\\f\\r\\t/\"",
                                 "9223372036854775807",
                                 "-9223372036854775808",
                                 "0.0001",
                                 "-0.0",
                                 "1e-07",
                                 "9223372036854775808",
                                 "-9223372036854775809",
                                 "18446744073709551615",
                                 "18446744073709551616",
                                 "[-123456789012345678901234567890]"})
    EXPECT_EQ(Again(json), json);
  EXPECT_EQ(Again(" {\"a\" : 1 ,\"a\":2} "), "{\"a\": 2}");
  EXPECT_EQ(Again("\"\\u00e9\\ud83d\\ude00\""), "\"é😀\"");
}

TEST(JsonTest, WhatWasParsedIsReadAsItsText) {
  for (const char* text :
       {"null", "false", "-5", "9223372036854775807", "18446744073709551615", "1e100", "-0.0",
        "18446744073709551616", "[]", "{}", "\"\\u00e9\\n\"",
        "{\"b\": [1, [2.5, {}], \"a\"], \"a\": {\"c\": [null, true]}, \"\": \"\"}"}) {
    const auto parsed = inlay::ParseJson("it", text);
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(Written(FromJson(**parsed)), Again(DumpJson(**parsed)));
  }
  Json nested;
  for (int i = 0; i < kMaxValueDepth; ++i) nested = Json::array({std::move(nested)});
  EXPECT_EQ(Written(FromJson(nested)), Again(DumpJson(nested)));
  EXPECT_EQ(Written(FromJson({{"a", nested}})), "JSON nests deeper than 200 levels");
}

TEST(JsonTest, HasStyles) {
  JsonStyle style = Style();
  style.ensure_ascii = true;
  EXPECT_EQ(Again("\"é😀\x7f\"", style), "\"\\u00e9\\ud83d\\ude00\\u007f\"");
  style = Style();
  style.sort_keys = true;
  style.indent = Text("  ", Origin::kTemplate);
  style.item_separator = Text(",", Origin::kTemplate);
  EXPECT_EQ(Again("{\"b\": [1, 2], \"a\": {}}", style),
            "{\n  \"a\": {},\n  \"b\": [\n    1,\n    2\n  ]\n}");
}

TEST(JsonTest, KeepsOriginsThroughEscapes) {
  Text text("a", Origin::kTemplate);
  text.Append("\n<|x|>", Origin::kMessage);
  Budget budget(Limits{});
  const auto json = ToJson(budget, Value::String(text), Style());
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->bytes(), "\"a\\n<|x|>\"");
  for (size_t i = 0; i < json->size(); ++i)
    EXPECT_EQ(json->OriginAt(i), i < 2 || i == 9 ? Origin::kTemplate : Origin::kMessage) << i;
}

TEST(JsonTest, RefusesWithASentence) {
  EXPECT_THAT(Again("[1"), HasSubstr("not JSON in UTF-8 at byte"));
  EXPECT_THAT(Again(""), HasSubstr("not JSON"));
  EXPECT_THAT(Again("{\"a\": 1} x"), HasSubstr("not JSON"));
  EXPECT_THAT(Again("\"\xff\""), HasSubstr("not JSON"));
  EXPECT_THAT(Again("\"\\ud800\""), HasSubstr("not JSON"));
  for (const std::string& number : {std::string("1e400"), std::string(400, '7')})
    EXPECT_THAT(Again(number), AllOf(HasSubstr(number.substr(0, 50)), HasSubstr("a double")));
  EXPECT_THAT(Again(std::string(100000, '[')), HasSubstr("deeper"));
  const std::string deep(kMaxValueDepth, '[');
  EXPECT_EQ(Again(deep + std::string(kMaxValueDepth, ']')),
            deep + std::string(kMaxValueDepth, ']'));
}

}  // namespace
}  // namespace inlay::jinja
