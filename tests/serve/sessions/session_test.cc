// A session's tokens, what going back leaves of it, and its form as a document.
#include "serve/sessions/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "serve/sessions/session_json.h"
#include "tests/repetitions.h"
#include "tests/serve/sessions/session_maker.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Kind = SessionTurn::Kind;

// Two turns, the second of which writes the end of the first one anew, and a continuation.
Session Example() {
  Session session = MakeSession("example");
  AddTurn(session, Kind::kAnswer, 0, {1, 2}, {3, 4, 5});
  AddTurn(session, Kind::kAnswer, 3, {6, 7, 8}, {9});
  AddTurn(session, Kind::kContinuation, 7, {10}, {11, 12});
  return session;
}

TEST(Session, TokensAreThoseThatTurnsKeepAndAdd) {
  const Session session = Example();
  EXPECT_THAT(session.Tokens(), ElementsAre(1, 2, 3, 6, 7, 8, 9, 10, 11, 12));
  EXPECT_EQ(session.length(), 10u);
  EXPECT_THAT(session.Tokens(1), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(session.Tokens(0), IsEmpty());
}

TEST(Session, MessagesHaveOneAnswerForAContinuedOne) {
  Session session = Example();
  *session.messages = Json::array({{{"role", "system"}, {"content", "be brief"}}});
  const Json all = *session.Messages();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0]["content"], "be brief");
  EXPECT_EQ(all[2]["content"], "said 1");
  EXPECT_EQ(all[4]["content"], "said 3");
  EXPECT_EQ((*session.Messages(2))[4]["content"], "said 2");
}

TEST(Session, GoesBackToVersions) {
  Session session = Example();
  ASSERT_TRUE(RewindToVersion(session, 3).ok());
  EXPECT_EQ(session.version, 3u) << "nothing changes";
  ASSERT_TRUE(RewindToVersion(session, 1).ok());
  EXPECT_EQ(session.version, 4u);
  EXPECT_THAT(session.Tokens(), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(session.turns[0].idempotency_key, "key 1");
  // Again: it is there already.
  ASSERT_TRUE(RewindToVersion(session, 1).ok());
  EXPECT_EQ(session.version, 4u);
  const absl::Status gone = RewindToVersion(session, 2);
  EXPECT_EQ(gone.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(gone.message()), HasSubstr("no version 2"));
  ASSERT_TRUE(RewindToVersion(session, 0).ok());
  EXPECT_EQ(session.version, 5u);
  EXPECT_EQ(session.length(), 0u);
}

TEST(Session, GoesBackToPositions) {
  // At 5 the second turn's prompt is cut, at 3 the turn is gone and with it half of the first one.
  struct Case {
    size_t position;
    std::vector<Kind> kinds;
    std::string said;
  };
  const std::vector<Case> cases = {
      {9, {Kind::kAnswer, Kind::kAnswer, Kind::kContinuation}, "9 10 11 "},
      {8, {Kind::kAnswer, Kind::kAnswer, Kind::kContinuation}, "9 10 "},
      {7, {Kind::kAnswer, Kind::kAnswer}, "said 2"},
      {6, {Kind::kAnswer, Kind::kAnswer}, ""},
      {5, {Kind::kAnswer, Kind::kCut}, ""},
      {4, {Kind::kAnswer, Kind::kCut}, ""},
      {3, {Kind::kAnswer}, "3 "},
      {2, {Kind::kAnswer}, ""},
      {1, {Kind::kCut}, ""},
      {0, {}, ""},
  };
  const std::vector<int32_t> all = Example().Tokens();
  for (const Case& c : cases) {
    SCOPED_TRACE(c.position);
    Session session = Example();
    ASSERT_TRUE(RewindToPosition(session, c.position, ReadAsText).ok());
    EXPECT_EQ(session.version, 4u);
    EXPECT_EQ(session.Tokens(), std::vector<int32_t>(all.begin(), all.begin() + c.position));
    std::vector<Kind> kinds;
    for (const SessionTurn& turn : session.turns) kinds.push_back(turn.kind);
    EXPECT_EQ(kinds, c.kinds);
    if (!session.turns.empty()) {
      EXPECT_EQ(session.turns.back().answer.said, c.said);
    }
    // What was cut has a version of its own, and is not what a request was replied with.
    const bool whole = c.position == 7 || c.position == 0;
    if (!whole) {
      EXPECT_EQ(session.turns.back().version, 4u);
      EXPECT_EQ(session.turns.back().idempotency_key, "");
    }
    // There it is already, also where it was forgotten that it is.
    ASSERT_TRUE(RewindToPosition(session, c.position, ReadAsText).ok());
    EXPECT_EQ(session.version, 4u);
    EXPECT_EQ(ParseSession(SessionDocument(session)).status(), absl::OkStatus());
  }
  Session session = Example();
  EXPECT_EQ(RewindToPosition(session, 11, ReadAsText).code(), absl::StatusCode::kOutOfRange);
}

// Any turns, cut anywhere, any number of times: the tokens are always the beginning of those
// before, and every version that is named keeps its tokens.
TEST(Session, GoesBackAnywhereAnyNumberOfTimes) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  for (int program = 0; program < Repetitions(100); ++program) {
    Session session = MakeSession("random");
    std::vector<std::pair<uint64_t, std::vector<int32_t>>> versions = {{0, {}}};
    int32_t next = 1;
    for (int step = 0; step < 20; ++step) {
      const std::vector<int32_t> before = session.Tokens();
      if (below(3) == 0) {
        const size_t position = below(before.size() + 1);
        ASSERT_TRUE(RewindToPosition(session, position, ReadAsText).ok());
        ASSERT_EQ(session.Tokens(),
                  std::vector<int32_t>(before.begin(), before.begin() + position));
      } else {
        const bool goes_on = session.ends_with_answer() && below(3) == 0;
        std::vector<int32_t> given(1 + below(3)), generated(below(4));
        for (int32_t& token : given) token = next++;
        for (int32_t& token : generated) token = next++;
        const size_t keep = goes_on ? before.size() : below(before.size() + 1);
        AddTurn(session, goes_on ? Kind::kContinuation : Kind::kAnswer, keep, given, generated);
        versions.emplace_back(session.version, session.Tokens());
      }
      const absl::StatusOr<Session> read = ParseSession(SessionDocument(session));
      ASSERT_TRUE(read.ok()) << read.status();
      ASSERT_EQ(SessionDocument(*read), SessionDocument(session));
      for (const auto& [version, tokens] : versions) {
        Session back = session;
        if (!RewindToVersion(back, version).ok()) continue;
        ASSERT_EQ(back.Tokens(), tokens) << version;
      }
    }
  }
}

TEST(Session, FindsTurnsByTheirKeys) {
  const Session session = Example();
  EXPECT_EQ(session.FindKey("key 2"), &session.turns[1]);
  EXPECT_EQ(session.FindKey("key 4"), nullptr);
  EXPECT_EQ(session.FindKey(""), nullptr);
}

TEST(Session, Names) {
  for (const char* name :
       {"a", "A-b_9", "0123456789012345678901234567890123456789012345678901234567890123"})
    EXPECT_TRUE(CheckSessionName(name).ok()) << name;
  for (const std::string name : {"", "a.b", "a/b", "a b", "\xc3\xa4", "a\n"})
    EXPECT_FALSE(CheckSessionName(name).ok()) << name;
  EXPECT_FALSE(CheckSessionName(std::string(65, 'a')).ok());
}

TEST(SessionDocument, KeepsEverything) {
  Session session = Example();
  *session.tools = Json::array({{{"type", "function"}}});
  *session.variables = {{"enable_thinking", false}};
  session.turns[0].options.sampling.temperature = 0.1f;
  session.turns[0].options.sampling.logit_bias = {{3, -1.5f}};
  session.turns[0].options.max_tokens = 7;
  session.turns[0].reason = StopReason::kStopText;
  session.turns[0].stop_text = "stop";
  session.turns[0].in_thinking = true;
  session.turns[0].answer.said = "<think>\"\xf0\x9f\x8e\xad\n";
  const std::string text = DumpJson(SessionDocument(session));
  const absl::StatusOr<JsonDocument> json = ParseJson("it", text);
  ASSERT_TRUE(json.ok());
  const absl::StatusOr<Session> read = ParseSession(**json);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(DumpJson(SessionDocument(*read)), text);
  EXPECT_EQ(read->Tokens(), session.Tokens());
  EXPECT_EQ(read->turns[0].options.sampling.seed, ~uint64_t{0} - 1);
  EXPECT_EQ(read->turns[0].options.sampling.temperature, 0.1f);
}

TEST(SessionDocument, RefusesWhatIsNone) {
  const auto refused = [](const std::function<void(Json&)>& change, const std::string& why) {
    Json document = SessionDocument(Example());
    change(document);
    SCOPED_TRACE(DumpJson(document));
    const absl::Status status = ParseSession(document).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(std::string(status.message()), HasSubstr(why));
  };
  refused([](Json& d) { d = Json::array(); }, "no saved session");
  refused([](Json& d) { d["object"] = 7; }, "no saved session");
  refused([](Json& d) { d["format"] = 2; }, "format 2");
  refused([](Json& d) { d["name"] = "a b"; }, "'a b'");
  refused([](Json& d) { d["turns"] = 1; },
          "the document is no whole session: turns must be a list, not 1");
  refused([](Json& d) { d["messages"] = {{{"content", "x"}}}; }, "messages[0].role is missing");
  refused([](Json& d) { d["turns"][0]["tokens"][0] = -1; }, "has the token -1");
  refused([](Json& d) { d["turns"][0]["tokens"][0] = 1e300; }, "turns[0].tokens[0] must be");
  refused([](Json& d) { d["turns"][0]["tokens"][0] = 4294967296; },
          "turns[0].tokens[0] must be a whole number from -2147483648 to 2147483647, not "
          "4294967296");
  refused([](Json& d) { d["turns"][1]["tokens"][2] = "x"; },
          "turns[1].tokens[2] must be a whole number from -2147483648 to 2147483647, not a string");
  refused([](Json& d) { d["turns"][0]["kind"] = "foo"; },
          "turns[0].kind must be answer or continuation or raw or cut, not 'foo'");
  refused([](Json& d) { d["turns"][0]["kind"] = 3; }, "turns[0].kind must be a string, not 3");
  refused([](Json& d) { d["turns"][0]["reason"] = "tired"; }, "turns[0].reason must be ");
  refused([](Json& d) { d["turns"][1]["keep"] = 6; }, "keeps 6 tokens of 5");
  refused([](Json& d) { d["turns"][1]["keep"] = -1; },
          "turns[1].keep must be a whole number from 0 to 18446744073709551615, not -1");
  refused(
      [](Json& d) {
        d["turns"][1]["kind"] = "continuation";
        d["turns"][1]["keep"] = 0;
      },
      "keeps 0 of the 5 tokens");
  refused([](Json& d) { d["turns"][1]["given"] = 5; }, "was given 5 of 4");
  refused([](Json& d) { d["turns"][1]["version"] = 1; }, "the version 1");
  refused([](Json& d) { d["turns"][2]["version"] = 4; }, "the version 4");
  refused([](Json& d) { d["turns"][1]["parent"] = 2; }, "the parent 2");
  refused([](Json& d) { d["turns"][1]["kind"] = "raw"; }, "of the kind raw");
  refused([](Json& d) { d["turns"].erase(0); }, "turn 0");
  refused([](Json& d) { d["root"] = "no/name"; }, "no/name");
  refused([](Json& d) { d["turns"][1]["message"] = nullptr; },
          "turns[1].message must be an object, not null");
  refused([](Json& d) { d["turns"][1]["message"]["content"] = 3; },
          "turns[1].message.content must be a string, not 3");
  refused([](Json& d) { d["turns"][1]["options"]["sampling"]["top_k"] = 1e99; },
          "turns[1].options.sampling.top_k must be a whole number");
  refused([](Json& d) { d["turns"][1]["options"]["sampling"]["top_p"] = 1e99; },
          "turns[1].options.sampling.top_p must be a number within the bounds of a float");
  refused(
      [](Json& d) {
        d["turns"][1]["options"]["sampling"]["logit_bias"] = {{1, "x"}};
      },
      "turns[1].options.sampling.logit_bias[0] must be a list of a token and a number");
  // Each member is needed.
  const Json document = SessionDocument(Example());
  for (const auto& member : document.items())
    refused([&](Json& d) { d.erase(member.key()); }, "no");
  for (const auto& member : document["turns"][0].items())
    refused([&](Json& d) { d["turns"][0].erase(member.key()); }, "no whole session");
}

}  // namespace
}  // namespace inlay::serve
