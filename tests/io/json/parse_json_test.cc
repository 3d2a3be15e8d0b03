#include "io/json/parse_json.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace inlay {
namespace {

// JSON may be written with single quotes here.
std::string Quoted(absl::string_view text) { return absl::StrReplaceAll(text, {{"'", "\""}}); }

std::string Read(absl::string_view text) {
  const auto json = ParseJson("the body", Quoted(text));
  return json.ok() ? DumpJson(**json) : std::string(json.status().message());
}

TEST(ParseJson, KeepsValuesAndOrder) {
  for (const char* text : {"null", "true", "-1", "18446744073709551615", "1.5", "'a'", "[]", "{}",
                           "[[],{},[1,'a']]", "{'b':1,'a':{'c':[null,{}],'b':{}},'':0}"})
    EXPECT_EQ(Read(text), Quoted(text));
}

TEST(ParseJson, LastMemberOfANameCounts) {
  EXPECT_EQ(Read("{'b':1,'a':2,'b':{'x':3}}"), Quoted("{'b':{'x':3},'a':2}"));
}

TEST(ParseJson, LimitsDepth) {
  EXPECT_EQ(Read(std::string(128, '[') + std::string(128, ']')),
            std::string(128, '[') + std::string(128, ']'));
  EXPECT_EQ(Read(std::string(129, '[')), "the body nests deeper than 128 levels");
  EXPECT_EQ(Read(std::string(10'000'000, '[')), "the body nests deeper than 128 levels");
  std::string objects;
  for (int i = 0; i < 129; ++i) objects += "{'a':";
  EXPECT_EQ(Read(objects), "the body nests deeper than 128 levels");
}

TEST(ParseJson, LimitsValues) {
  const char text[] = R"({"a":[1,"b",null],"a":{}})";  // which counts its lists and objects, too
  EXPECT_TRUE(ParseJson("the body", text, 6).ok());
  EXPECT_EQ(ParseJson("the body", text, 5).status().message(), "the body holds more than 5 values");
}

TEST(ParseJson, RefusesWhatIsNotJson) {
  for (const char* text :
       {"", "{", "[1,]", "{'a'}", "'\x80'", "'\xed\xa0\x80'", "'\\udc00'", "nul", "1 2", "'\n'"}) {
    EXPECT_EQ(Read(text).substr(0, 35), "the body is not JSON in UTF-8 at by") << text;
  }
}

TEST(ParseJson, SaysThatANumberIsTooLarge) {
  EXPECT_EQ(Read("[1e308,-1e400]"),
            "the body has the number '-1e400', which is beyond the range of a double");
}

TEST(JsonMember, IsNullWhereThereIsNone) {
  const Json json = {{"a", "text"}, {"b", 1}};
  EXPECT_EQ(JsonString(JsonMember(json, "a")), "text");
  EXPECT_EQ(JsonMember(json, "b"), 1);
  EXPECT_EQ(JsonString(JsonMember(json, "b")), "");
  EXPECT_TRUE(JsonMember(json, "c").is_null());
  EXPECT_TRUE(JsonMember(Json::array({"a"}), "a").is_null());
}

// Many members would take hours if each were searched for among those before.
TEST(ParseJson, TakesLinearTime) {
  std::string text = "{";
  for (int i = 0; i < 300'000; ++i) absl::StrAppend(&text, i == 0 ? "" : ",", "\"", i, "\":0");
  EXPECT_EQ(Read(text + "}"), text + "}");
}

TEST(EmptyJson, LeavesNull) {
  Json json = {{"a", {1, {{"b", nullptr}}}}, {"c", "d"}};
  EmptyJson(json);
  EXPECT_TRUE(json.is_null());
}

TEST(DumpJson, IsAlwaysUtf8) {
  EXPECT_EQ(DumpJson({{"a", "\xff\n"}}), "{\"a\":\"\xef\xbf\xbd\\n\"}");
}

TEST(DumpJson, EmptiesWhatIsNotNeededAnyMore) {
  Json json = {{"a", {1, 2}}};
  EXPECT_EQ(DumpJson(json), R"({"a":[1,2]})");
  EXPECT_EQ(DumpJson(std::move(json)), R"({"a":[1,2]})");
  EXPECT_TRUE(json.is_null());
}

}  // namespace
}  // namespace inlay
