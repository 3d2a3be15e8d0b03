// /v1/sessions/NAME/probabilities: those that the tokens had when they were generated, without a
// trace in the session.
#include "serve/service/session_probabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/fake_scheduler.h"
#include "tests/serve/service/session_routes_fixture.h"

namespace inlay::serve {
namespace {

using ::nlohmann::json;

class SessionProbabilitiesTest : public SessionRoutesTest {
 protected:
  json Probabilities(size_t begin, size_t end, size_t top = 0) {
    return Post("/talk/probabilities", {{"begin", begin}, {"end", end}, {"top", top}});
  }
  void ExpectRefused(const std::string& name, const json& body, int status,
                     const std::string& message, const std::string& key = "") {
    ExpectError("POST", absl::StrCat("/", name, "/probabilities"),
                body.is_string() ? body.get<std::string>() : body.dump(), status, message, key);
  }
  json Shown() { return Get("/talk?tokens=1"); }
};

json Say(uint64_t parent, const std::string& content, int most) {
  return {{"parent", parent}, {"content", content}, {"seed", 5},
          {"top_k", 0},       {"max_tokens", most}, {"ignore_eos", true}};
}

TEST_F(SessionProbabilitiesTest, AreThoseOfTheTimeOfGeneration) {
  Post("", {{"name", "talk"}});
  const json turn = Post("/talk/turns", Say(0, "ROMEO:", 40));
  const json before = Shown();
  const std::vector<int32_t> tokens = before["tokens"];
  const size_t begin = turn["answer"], end = turn["end"];
  // The same answer, with the probabilities that a completion tells of it.
  const json told = Ok("POST", "/v1/completions",
                       {{"prompt", std::vector<int32_t>(tokens.begin(), tokens.begin() + begin)},
                        {"seed", 5},
                        {"top_k", 0},
                        {"max_tokens", 40},
                        {"ignore_eos", true},
                        {"logprobs", 1}})["choices"][0]["logprobs"];
  const json reply = Probabilities(begin, end, 3);
  json head = reply;
  head.erase("tokens");
  EXPECT_EQ(head, json({{"object", "session.probabilities"},
                        {"session", "talk"},
                        {"version", 1},
                        {"begin", begin},
                        {"end", end}}));
  ASSERT_EQ(reply["tokens"].size(), 40u);
  for (size_t i = 0; i < 40; ++i) {
    const json& token = reply["tokens"][i];
    EXPECT_EQ(token["id"], tokens[begin + i]);
    EXPECT_EQ(token["text"], before["texts"][begin + i]);
    EXPECT_EQ(token["logprob"], told["token_logprobs"][i]) << i;
    ASSERT_EQ(token["top"].size(), 3u);
    const json& likeliest = token["top"][0];
    EXPECT_EQ(json({{likeliest["text"].get<std::string>(), likeliest["logprob"]}}),
              told["top_logprobs"][i]);
    EXPECT_GE(likeliest["logprob"], token["top"][1]["logprob"]);
  }
  // Of all tokens at once or in parts, also by another server; nothing has changed.
  const json all = Probabilities(1, end, 3)["tokens"];
  Start();
  json parts = json::array();
  for (size_t at = 1; at < end; at += 13) {
    const json part = Probabilities(at, std::min(at + 13, end), 3);
    parts.insert(parts.end(), part["tokens"].begin(), part["tokens"].end());
  }
  EXPECT_EQ(parts, all);
  EXPECT_EQ(json(std::vector<json>(all.begin() + begin - 1, all.end())), reply["tokens"]);
  EXPECT_EQ(Shown(), before);
}

TEST_F(SessionProbabilitiesTest, ComeWhileATurnRuns) {
  context_ = 200'000;
  Start();
  Post("", {{"name", "talk"}});
  const size_t end = Post("/talk/turns", Say(0, "ROMEO:", 8))["end"];
  json body = Say(1, "JULIET:", 100'000);
  body["stream"] = true;
  const auto running = Ask(*service_, "POST", "/v1/sessions/talk/turns", body.dump());
  running->WaitFor("delta");
  EXPECT_EQ(Probabilities(1, end)["version"], 1);
  running->Leave();
  running->Wait();
  EXPECT_EQ(Shown()["version"], 1);
}

TEST_F(SessionProbabilitiesTest, BelongToTheClient) {
  ASSERT_TRUE(keys_.Replace("key-of-ann ann\nkey-of-bob bob\n").ok());
  Send("POST", "/v1/sessions", R"({"name": "talk"})", "key-of-ann");
  Send("POST", "/v1/sessions/talk/turns", Say(0, "ROMEO:", 8).dump(), "key-of-ann");
  const json body = {{"begin", 1}, {"end", 3}};
  EXPECT_EQ(Send("POST", "/v1/sessions/talk/probabilities", body.dump(), "key-of-ann")->status(),
            200);
  ExpectRefused("talk", body, 404, "no session talk", "key-of-bob");
}

TEST_F(SessionProbabilitiesTest, RefusesByName) {
  Post("", {{"name", "talk"}});
  const size_t end = Post("/talk/turns", Say(0, "ROMEO:", 8))["end"];
  ExpectRefused("talk", "{", 400, "not JSON");
  ExpectRefused("talk", {{"end", 2}}, 400, "begin must be given");
  ExpectRefused("talk", {{"begin", 1}}, 400, "end must be given");
  ExpectRefused("talk", {{"begin", 0}, {"end", 2}}, 400, "begin must be a whole number from 1");
  ExpectRefused("talk", {{"begin", 2}, {"end", 2}}, 400, "end must be more than begin, 2, not 2");
  ExpectRefused("talk", {{"begin", 1}, {"end", 4098}}, 400, "at most 4096 more than begin");
  ExpectRefused("talk", {{"begin", 1}, {"end", end + 1}}, 400,
                absl::StrCat("beyond the ", end, " tokens of the session talk"));
  ExpectRefused("talk", {{"begin", 1}, {"end", 2}, {"top", 21}}, 400, "top");
  ExpectRefused("talk", {{"begin", 1}, {"end", 2}, {"magic", 1}}, 400, "magic");
  ExpectRefused("nobody", {{"begin", 1}, {"end", 2}}, 404, "no session nobody");
  EXPECT_EQ(Send("GET", "/v1/sessions/talk/probabilities", "")->status(), 404);
}

class ReplyProbabilitiesTest : public ::testing::Test {
 protected:
  ReplyProbabilitiesTest() {
    session_.name = "s";
    session_.turns.emplace_back().tokens = {5, 6, 7, 8};
  }
  absl::Status Reply() {
    AnswerRequest request;
    request.owner = 3;
    Visit visit{.request = {}, .reply = reply_, .client = {}, .protocol = Protocol::kInlay};
    visit.request.body = R"({"begin": 2, "end": 3, "top": 1})";
    return ReplyProbabilities({*Model().tokenizer, scheduler_, writers_}, session_,
                              std::move(request), visit);
  }

  Session session_;
  FakeScheduler scheduler_;
  std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  Workers writers_{1};  // last: it writes the reply
};

TEST_F(ReplyProbabilitiesTest, AsksForWhatIsNeededAndNoMore) {
  ASSERT_TRUE(Reply().ok());
  const AnswerRequest& request = scheduler_.asked.at(0).request;
  EXPECT_EQ(request.prompt, std::vector<int32_t>({5, 6, 7}));
  EXPECT_EQ(request.options.max_tokens, 0u);
  EXPECT_EQ(request.options.score_from, 2u);
  EXPECT_EQ(request.options.top_chances, 1u);
  EXPECT_EQ(request.owner, 3);
  const ChosenToken chosen{7, -std::numeric_limits<float>::infinity(), {{6, -0.5f}}};
  AnswerUpdate update;
  update.chosen = {&chosen, 1};
  EXPECT_TRUE(scheduler_.asked.at(0).listener->OnUpdate(update));
  scheduler_.End(1);
  reply_->Wait();
  EXPECT_EQ(reply_->status(), 200);
  const json token = reply_->Json()["tokens"][0];
  EXPECT_EQ(token["id"], 7);
  EXPECT_EQ(token["logprob"], -9999.0) << "JSON has no infinity";
  EXPECT_EQ(token["top"][0]["logprob"], -0.5);
}

TEST_F(ReplyProbabilitiesTest, EndsWhenTheClientLeaves) {
  ASSERT_TRUE(Reply().ok());
  reply_->Leave();
  reply_->Wait();
  EXPECT_EQ(reply_->status(), 499);
}

TEST_F(ReplyProbabilitiesTest, ReturnsWhatTheSchedulerRefuses) {
  scheduler_.places = 0;
  EXPECT_EQ(Reply(), scheduler_.refusal);
  EXPECT_EQ(reply_->status(), 0) << "the caller replies";
}

}  // namespace
}  // namespace inlay::serve
