// What becomes of stored sessions over the years: another model, another version, a damaged file,
// too many.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/store/state_store_file.h"
#include "io/store/state_store_memory.h"
#include "serve/sessions/session_store.h"
#include "tests/serve/service/session_routes_fixture.h"
#include "tests/serve/sessions/session_maker.h"

namespace inlay::serve {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

class SessionUpkeepTest : public SessionRoutesTest {
 protected:
  std::string FileOf(const std::string& name) const {
    for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) {
      std::string path = entry.path().string();
      if (absl::EndsWith(path, absl::StrCat(".", name, ".state"))) return path;
    }
    ADD_FAILURE() << name << " has no file";
    return "";
  }
};

// Its messages can still be read where its tokens mean nothing any more.
TEST_F(SessionUpkeepTest, ASessionOfAnotherVocabularyIsShown) {
  Post("", {{"name", "talk"}, {"system", "Be brief."}});
  const json turn = Post("/talk/turns", Turn(0, "ROMEO:"));
  const json before = Get("/talk?tokens=1");
  EXPECT_FALSE(before.contains("read_only"));
  {
    SessionStore store(std::make_shared<FileStore>(folder_.path()), {});
    auto hold = Must(store.Acquire("", "talk"));
    Session session = Must(store.Load(hold, "talk"));
    session.vocabulary = "another";
    ASSERT_TRUE(store.Save(hold, session).ok());
  }
  json shown = Get("/talk");
  EXPECT_EQ(shown["turns"][0]["message"], turn["message"]);
  EXPECT_EQ(shown["turns"][0]["messages"][0]["content"], "ROMEO:");
  EXPECT_TRUE(shown["read_only"]);
  shown = Get("/talk?tokens=1");
  EXPECT_EQ(shown["tokens"], before["tokens"]);
  ASSERT_EQ(shown["texts"].size(), before["tokens"].size());
  EXPECT_EQ(shown["texts"][0], "\xEF\xBF\xBD");
  EXPECT_EQ(shown["sizes"][0], 0);
  for (const char* action : {"turns", "fork", "rewind"}) {
    const json body = action == std::string("turns")  ? Turn(1, "JULIET:")
                      : action == std::string("fork") ? json::object()
                                                      : json{{"version", 0}};
    ExpectError("POST", absl::StrCat("/talk/", action), body.dump(), 400,
                "another vocabulary, and can only be read, saved and deleted here");
  }
  EXPECT_EQ(Post("/talk/save")["vocabulary"], "another");
  EXPECT_TRUE(Ok("DELETE", "/v1/sessions/talk")["deleted"]);
}

TEST_F(SessionUpkeepTest, ASessionThatCannotBeReadIsListedAndDeleted) {
  for (const auto& [damage, says] :
       {std::pair("inlaySe2", "the stored session talk was written by another version of Inlay"),
        std::pair("rubbish!", "the stored session talk is damaged: it does not begin as one")}) {
    Post("", {{"name", "talk"}});
    Post("", {{"name", "whole"}});
    {
      std::fstream file(FileOf("talk"), std::ios::in | std::ios::out | std::ios::binary);
      file << damage;
    }
    const json list = Get("")["data"];
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(list[0]["name"], "talk");
    EXPECT_EQ(list[0]["unreadable"], says);
    EXPECT_GT(list[0]["bytes"], 32);
    EXPECT_FALSE(list[1].contains("unreadable"));
    ExpectError("GET", "/talk", "", 500, says);
    ExpectError("POST", "/talk/turns", Turn(0, "ROMEO:").dump(), 500, says);
    ExpectError("POST", "", R"({"name": "talk"})", 409, "exists already");
    for (const char* name : {"talk", "whole"})
      EXPECT_TRUE(Ok("DELETE", absl::StrCat("/v1/sessions/", name))["deleted"]);
  }
  EXPECT_EQ(Get("")["data"].size(), 0u);
}

// Whoever has too many would try again in vain, which clients do after 429.
TEST_F(SessionUpkeepTest, TheLimitIsNoLoad) {
  states_ = std::make_shared<MemoryStore>();
  Start();
  const SessionLimits limits;
  SessionStore store(states_, limits);
  for (size_t i = 0; i < limits.most_sessions; ++i) {
    const std::string name = absl::StrCat("s", i);
    const auto hold = Must(store.Acquire("", name));
    ASSERT_TRUE(store.Create(hold, "", MakeSession(name)).ok());
  }
  const auto refused = Send("POST", "/v1/sessions", "{}");
  EXPECT_EQ(refused->status(), 403);
  EXPECT_EQ(refused->Header("Retry-After"), "");
  const json error = refused->Json()["error"];
  EXPECT_EQ(error["type"], "permission_error");
  EXPECT_THAT(error["message"].get<std::string>(), HasSubstr("no more than 1000: delete some"));
  EXPECT_TRUE(Ok("DELETE", "/v1/sessions/s7")["deleted"]);
  Post("");
}

}  // namespace
}  // namespace inlay::serve
