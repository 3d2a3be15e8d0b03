#include "serve/service/session_body.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "base/xxh64.h"
#include "nlohmann/json.hpp"
#include "tests/must.h"

namespace inlay::serve {
namespace {

// Sessions keep the hash, so that every release must make the same of a request: it is that of the
// text that nlohmann's json, which sorts members, writes.
TEST(SessionBodyTest, TheHashIsThatOfTheSortedRequest) {
  const char* const rest =
      R"("messages":[{"role":"user","content":[{"type":"text","text":"\u00e9\"\n"}]}],)"
      R"("temperature":0.1,"seed":18446744073709551615,"stop":[],"user":"","logit_bias":{},)"
      R"("chat_template_kwargs":{"b":null,"a":[-1,[true,1e100]],"":{}})";
  const auto hash = [](absl::string_view members) {
    return Must(ParseTurn(absl::StrCat("{\"parent\":7,", members, "}"))).hash;
  };
  const std::string meaning =
      absl::StrCat("7 ", nlohmann::json::parse(absl::StrCat("{", rest, "}")).dump());
  EXPECT_EQ(hash(rest), Xxh64Of(meaning.data(), meaning.size()));
}

TEST(SessionBodyTest, TheHashIsOfWhatIsAskedFor) {
  const auto hash = [](const std::string& body) { return Must(ParseTurn(body)).hash; };
  const uint64_t asked = hash(R"({"parent": 1, "content": "a", "seed": 2})");
  EXPECT_EQ(hash(R"({"seed": 2, "content": "a", "parent": 1})"), asked);
  EXPECT_EQ(hash(R"({"parent": 1, "content": "a", "seed": 2, "stream": true,)"
                 R"( "stream_options": {"include_usage": true}, "idempotency_key": "k"})"),
            asked);
  EXPECT_NE(hash(R"({"parent": 2, "content": "a", "seed": 2})"), asked);
  EXPECT_NE(hash(R"({"parent": 1, "content": "b", "seed": 2})"), asked);
}

// Clients write all members that they know, with null for those that they leave out.
TEST(SessionBodyTest, ANullMemberIsNone) {
  const TurnBody turn = Must(ParseTurn(
      R"({"parent": 1, "content": "a", "messages": null, "prompt": null, "tokens": null})"));
  EXPECT_FALSE(turn.raw);
  EXPECT_EQ(turn.hash, Must(ParseTurn(R"({"parent": 1, "content": "a"})")).hash);
  const TurnBody raw =
      Must(ParseTurn(R"({"parent": 1, "prompt": "a", "content": null, "tokens": null})"));
  EXPECT_TRUE(raw.raw);
  EXPECT_EQ(*raw.rest, (Json{{"prompt", "a"}}));
}

TEST(SessionBodyTest, ANewSessionHasWhatItsRequestSays) {
  const Session session = Must(ParseNewSession(
      R"({"name": "a", "system": "Be brief.", "tools": [{"type": "function", "function":)"
      R"( {"name": "f"}}], "messages": [{"role": "user", "content": "Hello"}],)"
      R"( "chat_template_kwargs": {"style": "short"}, "modalities": []})",
      {}));
  EXPECT_EQ(session.name, "a");
  EXPECT_EQ(*session.messages, Json::array({{{"role", "system"}, {"content", "Be brief."}},
                                            {{"role", "user"}, {"content", "Hello"}}}));
  EXPECT_EQ((*session.tools)[0]["function"]["name"], "f");
  EXPECT_EQ(*session.variables, (Json{{"style", "short"}}));
  EXPECT_TRUE(Must(ParseNewSession("", {})).messages->empty());
}

}  // namespace
}  // namespace inlay::serve
