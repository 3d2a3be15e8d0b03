// /v1/sessions: turns, forks and rewinds as clients see them, with the demo model.
#include "serve/service/session_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/session_routes_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

// The demo model has no thoughts; this template makes some of what it says: what stands before the
// first "e" was thought, and earlier thoughts are left out.
constexpr absl::string_view kForgetful =
    "{% for m in messages %}{% if m.role == 'assistant' %}{{ m.content.split('e')[-1] }}"
    "{% else %}{{ m.role }}: {{ m.content }}{% endif %}\n{% endfor %}"
    "{% if add_generation_prompt %}answer: {% endif %}";

TEST_F(SessionRoutesTest, MakesListsAndDeletes) {
  const json made = Post("", {{"name", "talk"}, {"system", "Be brief."}});
  EXPECT_EQ(made["name"], "talk");
  EXPECT_EQ(made["version"], 0);
  EXPECT_EQ(made["length"], 0);
  EXPECT_EQ(made["messages"][0]["content"], "Be brief.");
  ExpectError("POST", "", R"({"name": "talk"})", 409, "exists already");
  const std::string random = Post("")["name"];
  EXPECT_NE(random, Post("")["name"].get<std::string>());
  Post("/talk/turns", Turn(0, "ROMEO:"));
  const json list = Get("")["data"];
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[2]["name"], "talk");
  EXPECT_EQ(list[2]["version"], 1);
  EXPECT_GT(list[2]["length"], 8);
  EXPECT_GT(list[2]["bytes"], 500);
  EXPECT_TRUE(Ok("DELETE", "/v1/sessions/talk")["deleted"]);
  ExpectError("GET", "/talk", "", 404, "no session talk");
  ExpectError("DELETE", "/talk", "", 404, "no session talk");
  EXPECT_EQ(Get("")["data"].size(), 2u);
}

// The answer is that of the same request alone; the second one, that to the tokens so far and what
// the template puts behind them.
TEST_F(SessionRoutesTest, AnswersAsOtherRequestsDo) {
  Post("", {{"name", "talk"}, {"system", "Be brief."}});
  const json one = Post("/talk/turns", Turn(0, "ROMEO:", 7, 20));
  json messages = {{{"role", "system"}, {"content", "Be brief."}},
                   {{"role", "user"}, {"content", "ROMEO:"}}};
  const json chat =
      Ok("POST", "/v1/chat/completions", {{"messages", messages}, {"seed", 7}, {"max_tokens", 20}});
  EXPECT_EQ(one["message"]["content"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(one["seed"], 7);
  EXPECT_EQ(one["version"], 1);
  EXPECT_EQ(one["parent"], 0);
  EXPECT_EQ(one["system_fingerprint"], service_->service_fingerprint());
  EXPECT_EQ(one["usage"]["completion_tokens"], 20);
  const std::vector<int32_t> first = Tokens("talk");
  EXPECT_EQ(first.size(), one["end"]);

  const json two = Post("/talk/turns", Turn(1, "JULIET:", 8, 20));
  const std::vector<int32_t> tokens = Tokens("talk");
  EXPECT_EQ(two["begin"], first.size()) << "all of it is kept, as it was generated";
  EXPECT_TRUE(std::equal(first.begin(), first.end(), tokens.begin()));
  const size_t answer = two["answer"];
  EXPECT_EQ(two["message"]["content"], Alone({tokens.begin(), tokens.begin() + answer}, 8, 20));
  // What was computed for the turn before need not be computed again.
  EXPECT_GE(two["usage"]["prompt_tokens_details"]["cached_tokens"], first.size() - 1);
  const json shown = Get("/talk");
  EXPECT_EQ(shown["turns"][1]["messages"][0]["content"], "JULIET:");
  EXPECT_EQ(shown["turns"][1]["message"], two["message"]);
  EXPECT_FALSE(shown.contains("tokens"));
  const json whole = Get("/talk?tokens=1");
  ASSERT_EQ(whole["sizes"].size(), tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i)
    EXPECT_EQ(whole["sizes"][i], whole["texts"][i].get<std::string>().size())
        << "all is ASCII here";
}

// A template that writes earlier answers otherwise than they were: the tokens are kept as far as
// they agree.
TEST_F(SessionRoutesTest, TemplatesThatRewriteAnswers) {
  template_ = std::string(kForgetful);
  Start();
  Post("", {{"name", "talk"}});
  json messages = json::array();
  bool rewritten = false;
  for (int i = 0; i < 4; ++i) {
    messages.push_back({{"role", "user"}, {"content", absl::StrCat("Speak ", i, ".")}});
    const std::vector<int32_t> before = Tokens("talk");
    const json turn = Post("/talk/turns", Turn(i, absl::StrCat("Speak ", i, "."), i, 16));
    const json chat = Ok("POST", "/v1/chat/completions",
                         {{"messages", messages}, {"seed", i}, {"max_tokens", 16}});
    rewritten = rewritten || turn["begin"] < before.size();
    EXPECT_EQ(turn["message"]["content"], chat["choices"][0]["message"]["content"]) << i;
    messages.push_back(turn["message"]);
  }
  EXPECT_TRUE(rewritten);
  // Each version has its tokens, although later ones have written them anew.
  const json shown = Get("/talk");
  EXPECT_FALSE(shown["turns"][0]["intact"]);
  const json back = Post("/talk/rewind", {{"version", 2}});
  EXPECT_EQ(back["length"], shown["turns"][1]["end"]);
}

// What follows an answer that a stop text ended follows what was replied, as for other requests:
// its tokens have that text, which nobody was shown.
TEST_F(SessionRoutesTest, StopTextsAreNotInWhatFollows) {
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:", 7, 40);
  body["stop"] = {"e"};
  const json one = Post("/talk/turns", body);
  ASSERT_EQ(one["finish_reason"], "stop");
  const json two = Post("/talk/turns", Turn(1, "JULIET:", 8, 20));
  const json messages = {{{"role", "user"}, {"content", "ROMEO:"}},
                         one["message"],
                         {{"role", "user"}, {"content", "JULIET:"}}};
  const json chat =
      Ok("POST", "/v1/chat/completions", {{"messages", messages}, {"seed", 8}, {"max_tokens", 20}});
  EXPECT_EQ(two["message"]["content"], chat["choices"][0]["message"]["content"]);
  EXPECT_EQ(two["answer"], chat["usage"]["prompt_tokens"]);
}

TEST_F(SessionRoutesTest, Streams) {
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:", 3, 20);
  body["idempotency_key"] = "once";
  body["stream"] = true;
  const auto reply = Send("POST", "/v1/sessions/talk/turns", body.dump());
  const auto check = [&](FakeReply& from) {
    const std::vector<json> events = from.Events();
    std::string text;
    for (size_t i = 0; i + 1 < events.size(); ++i) {
      EXPECT_EQ(events[i]["type"], "text");
      text += events[i]["delta"];
    }
    const json last = events.back();
    EXPECT_EQ(last["type"], "turn");
    EXPECT_EQ(last["version"], 1);
    EXPECT_EQ(last["message"]["content"], text);
    return text;
  };
  const std::string text = check(*reply);
  EXPECT_GT(reply->Events().size(), 4u);
  // The stored turn as a stream, and as a whole.
  EXPECT_EQ(check(*Send("POST", "/v1/sessions/talk/turns", body.dump())), text);
  body.erase("stream");
  EXPECT_EQ(Post("/talk/turns", body)["message"]["content"], text);
  EXPECT_EQ(Get("/talk")["turns"].size(), 1u);
}

// What is streamed again is what was streamed: not the answer that is continued, nor the text
// given.
TEST_F(SessionRoutesTest, AStreamedContinuationAgain) {
  Post("", {{"name", "talk"}});
  Post("/talk/turns", Turn(0, "ROMEO:", 3, 10));
  for (const char* given : {"", " and so"}) {
    json body = {{"parent", Get("/talk")["version"]},
                 {"prompt", given},
                 {"max_tokens", 10},
                 {"seed", 4},
                 {"stream", true},
                 {"idempotency_key", absl::StrCat("on", given)}};
    const auto first = Send("POST", "/v1/sessions/talk/turns", body.dump());
    const auto again = Send("POST", "/v1/sessions/talk/turns", body.dump());
    const auto text_of = [](FakeReply& reply) {
      std::string text;
      for (const json& event : reply.Events())
        if (event["type"] == "text") text += event["delta"];
      return text;
    };
    EXPECT_FALSE(text_of(*first).empty());
    EXPECT_EQ(text_of(*again), text_of(*first));
    EXPECT_EQ(again->Events().back(), first->Events().back());
  }
}

TEST_F(SessionRoutesTest, ATurnFollowsTheNewestVersion) {
  Post("", {{"name", "talk"}});
  Post("/talk/turns", Turn(0, "ROMEO:"));
  const auto stale = Send("POST", "/v1/sessions/talk/turns", Turn(0, "again").dump());
  EXPECT_EQ(stale->status(), 409);
  EXPECT_EQ(stale->Json()["error"]["version"], 1);
  EXPECT_THAT(stale->body(), HasSubstr("is at version 1, not at 0"));
  ExpectError("POST", "/talk/turns", Turn(2, "again").dump(), 409, "is at version 1, not at 2");
  ExpectError("POST", "/talk/rewind", R"({"parent": 0, "version": 0})", 409, "at version 1");
  // A rewind is a new version too.
  EXPECT_EQ(Post("/talk/rewind", {{"version", 0}, {"parent", 1}})["version"], 2);
  ExpectError("POST", "/talk/turns", Turn(0, "again").dump(), 409, "is at version 2");
  EXPECT_EQ(Post("/talk/turns", Turn(2, "again"))["version"], 3);
}

// Retries append once, also after a restart; another request with the key is none.
TEST_F(SessionRoutesTest, KeysAppendOnce) {
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:");
  body["idempotency_key"] = "k1";
  body.erase("seed");  // each time another one, if it were computed again
  const json one = Post("/talk/turns", body);
  EXPECT_EQ(Post("/talk/turns", body), one);
  Start();
  EXPECT_EQ(Post("/talk/turns", body), one);
  nlohmann::ordered_json reversed;  // as of a client that writes members in another order each time
  for (auto member = body.rbegin(); member != body.rend(); ++member)
    reversed[member.key()] = member.value();
  const auto reply = Send("POST", "/v1/sessions/talk/turns", reversed.dump());
  reply->Wait();
  EXPECT_EQ(json::parse(reply->body()), one);
  EXPECT_EQ(Get("/talk")["turns"].size(), 1u);
  json other = body;
  other["content"] = "JULIET:";
  ExpectError("POST", "/talk/turns", other.dump(), 409, "used for another request");
  // A copy has had no such request.
  Post("/talk/fork", {{"name", "copy"}});
  other["parent"] = 1;
  EXPECT_EQ(Post("/copy/turns", other)["version"], 2);
  // What was rewound is no answer any more.
  Post("/talk/rewind", {{"version", 0}});
  ExpectError("POST", "/talk/turns", body.dump(), 409, "is at version 2");
}

TEST_F(SessionRoutesTest, OneOfTwoTurnsWins) {
  Post("", {{"name", "talk"}});
  for (uint64_t version = 0; version < 5; ++version) {
    std::vector<std::shared_ptr<FakeReply>> replies;
    std::vector<std::thread> threads;
    replies.resize(4);
    for (size_t i = 0; i < replies.size(); ++i) {
      threads.emplace_back([&, i] {
        replies[i] =
            Send("POST", "/v1/sessions/talk/turns", Turn(version, absl::StrCat("To ", i)).dump());
      });
    }
    for (std::thread& thread : threads) thread.join();
    size_t won = 0;
    for (const auto& reply : replies) {
      if (reply->status() == 200) ++won;
      EXPECT_THAT(reply->status(), testing::AnyOf(200, 409)) << reply->body();
    }
    EXPECT_EQ(won, 1u);
    EXPECT_EQ(Get("/talk")["version"], version + 1);
  }
}

// A client that goes away leaves the session as it was, and free.
TEST_F(SessionRoutesTest, TurnsThatAreCancelled) {
  context_ = 200'000;
  Start();
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:", 1, 100'000);
  body["stream"] = true;
  body["ignore_eos"] = true;
  const auto reply = Ask(*service_, "POST", "/v1/sessions/talk/turns", body.dump());
  reply->WaitFor("delta");
  ExpectError("POST", "/talk/turns", Turn(0, "and?").dump(), 409, "changed by another request");
  ExpectError("POST", "/talk/rewind", R"({"version": 0})", 409, "changed by another request");
  ExpectError("DELETE", "/talk", "", 409, "changed by another request");
  EXPECT_EQ(Get("/talk")["version"], 0) << "as the store has it";
  reply->Leave();
  reply->Wait();
  EXPECT_EQ(reply->Events().back()["type"], "error");
  EXPECT_EQ(Get("/talk")["version"], 0);
  EXPECT_EQ(Post("/talk/turns", Turn(0, "and?"))["version"], 1);
}

// A turn in the background outlives its client; others follow it, and stop it where it is.
TEST_F(SessionRoutesTest, TurnsInTheBackground) {
  context_ = 200'000;
  Start();
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:", 1, 100'000);
  body["stream"] = true;
  body["ignore_eos"] = true;
  body["background"] = true;
  const auto first = Ask(*service_, "POST", "/v1/sessions/talk/turns", body.dump());
  first->WaitFor("delta");
  first->Leave();
  EXPECT_TRUE(Get("/talk")["running"]);
  const auto second = Ask(*service_, "GET", "/v1/sessions/talk/running");
  second->WaitFor("delta");
  EXPECT_FALSE(first->finished());
  EXPECT_EQ(Post("/talk/stop")["session"], "talk");
  first->Wait();
  second->Wait();
  const json turn = first->Events().back();
  EXPECT_EQ(turn["type"], "turn");
  EXPECT_EQ(turn["finish_reason"], "cancelled");
  EXPECT_LT(turn["usage"]["completion_tokens"], 100'000);
  const auto text_of = [](const std::vector<json>& events) {
    std::string text;
    for (const json& event : events) {
      if (event["type"] == "text") text += event["delta"];
    }
    return text;
  };
  EXPECT_EQ(text_of(first->Events()), turn["message"]["content"].get<std::string>());
  EXPECT_EQ(text_of(second->Events()), turn["message"]["content"].get<std::string>());
  EXPECT_EQ(second->Events().front()["type"], "running");
  EXPECT_EQ(second->Events().front()["messages"][0]["content"], "ROMEO:");
  EXPECT_EQ(second->Events().back(), turn);
  const json shown = Get("/talk");
  EXPECT_FALSE(shown["running"]);
  EXPECT_EQ(shown["version"], 1);
  EXPECT_EQ(shown["turns"][0]["message"], turn["message"]);
  // It goes on where it was stopped, as if it had not been.
  const size_t done = turn["usage"]["completion_tokens"];
  const json more =
      Post("/talk/turns",
           {{"parent", 1}, {"prompt", ""}, {"seed", 1}, {"max_tokens", 10}, {"ignore_eos", true}});
  const json whole = Ok("POST", "/v1/chat/completions",
                        {{"messages", {{{"role", "user"}, {"content", "ROMEO:"}}}},
                         {"seed", 1},
                         {"max_tokens", done + 10},
                         {"ignore_eos", true}});
  EXPECT_EQ(more["message"]["content"], whole["choices"][0]["message"]["content"]);
  ExpectError("GET", "/talk/running", "", 404, "no turn of the session talk");
  ExpectError("POST", "/talk/stop", "", 404, "no turn of the session talk");
}

// Also while the next turn is computed: the client may not have seen the first one's reply.
TEST_F(SessionRoutesTest, TheKeyOfAnEarlierTurn) {
  context_ = 200'000;
  Start();
  Post("", {{"name", "talk"}});
  json first = Turn(0, "ROMEO:");
  first["idempotency_key"] = "k";
  const json one = Post("/talk/turns", first);
  json second = Turn(1, "JULIET:", 1, 100'000);
  second["stream"] = second["ignore_eos"] = true;
  second["idempotency_key"] = "l";
  const auto reply = Ask(*service_, "POST", "/v1/sessions/talk/turns", second.dump());
  reply->WaitFor("delta");
  EXPECT_EQ(Post("/talk/turns", first), one);
  ExpectError("POST", "/talk/turns", Turn(1, "JULIET:").dump(), 409, "by another request");
  Post("/talk/stop");
  reply->Wait();
}

// Whether a turn is one of the background is not what it asks for.
TEST_F(SessionRoutesTest, TheKeyOfATurnInTheBackground) {
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:");
  body["idempotency_key"] = "k";
  body["background"] = true;
  const json one = Post("/talk/turns", body);
  body.erase("background");
  EXPECT_EQ(Post("/talk/turns", body), one);
  body["background"] = "yes";
  ExpectError("POST", "/talk/turns", body.dump(), 400, "background must be true or false");
}

// A turn that waits or reads its prompt has nothing to keep.
TEST_F(SessionRoutesTest, StopsBeforeTheAnswer) {
  context_ = 200'000;
  Start();
  Post("", {{"name", "talk"}});
  std::string text;
  while (text.size() < 12'000) text += "To be, or not to be. ";
  json body = Turn(0, text, 1, 100'000);
  body["stream"] = true;
  body["ignore_eos"] = true;
  const auto reply = Ask(*service_, "POST", "/v1/sessions/talk/turns", body.dump());
  ASSERT_TRUE(WaitUntil([&] { return Get("/talk")["running"] == true; }));
  Post("/talk/stop");
  reply->Wait();
  const json last = reply->Events().back();
  // The prompt may have been read by then: the answer is then kept with its first token.
  if (last["type"] == "error") {
    EXPECT_THAT(last["error"]["message"].get<std::string>(), HasSubstr("cancelled"));
    EXPECT_EQ(Get("/talk")["version"], 0);
  } else {
    EXPECT_EQ(Get("/talk")["version"], 1);
  }
}

TEST_F(SessionRoutesTest, TitlesAndRoots) {
  Post("", {{"name", "talk"}, {"system", "Be  brief."}});
  EXPECT_EQ(Get("/talk")["title"], "Be brief.");
  Post("/talk/turns", Turn(0, "  What\n is\t\xc3\xa9 this?"));
  Post("/talk/fork", {{"name", "fork"}, {"version", 1}});
  Post("/fork/fork", {{"name", "again"}});
  const json list = Get("")["data"];
  ASSERT_EQ(list.size(), 3u);
  for (const json& session : list) {
    EXPECT_EQ(session["title"], "What is \xc3\xa9 this?");
    EXPECT_EQ(session["root"], session["name"] == "talk" ? "" : "talk");
  }
  Post("/copy/load", Post("/again/save"));
  EXPECT_EQ(Get("/copy")["root"], "talk");
  std::string longest;
  for (int i = 0; i < 79; ++i) longest += i % 2 == 0 ? "a" : "\xc3\xa9";
  Post("", {{"name", "long"}, {"messages", {{{"role", "user"}, {"content", longest}}}}});
  const std::string title = Get("/long")["title"];
  EXPECT_LE(title.size(), 80u);
  EXPECT_GE(title.size(), 79u);
  EXPECT_TRUE(longest.starts_with(title));
}

TEST_F(SessionRoutesTest, ForksAndRewindsToAnyToken) {
  Post("", {{"name", "talk"}});
  Post("/talk/turns", Turn(0, "ROMEO:", 1, 12));
  const json second = Post("/talk/turns", Turn(1, "JULIET:", 2, 12));
  const std::vector<int32_t> tokens = Tokens("talk");
  for (size_t position = 0; position <= tokens.size(); ++position) {
    const std::string name = absl::StrCat("fork-", position);
    const json fork = Post("/talk/fork", {{"name", name}, {"position", position}});
    EXPECT_EQ(fork["length"], position);
    EXPECT_EQ(Tokens(name), std::vector<int32_t>(tokens.begin(), tokens.begin() + position));
    Ok("DELETE", absl::StrCat("/v1/sessions/", name));
  }
  EXPECT_EQ(Tokens("talk"), tokens);
  EXPECT_EQ(Get("/talk")["version"], 2);
  // Back into the answer, and on from there with the same seed: the same answer.
  const size_t begin = second["answer"];
  const json cut = Post("/talk/rewind", {{"position", begin + 5}});
  EXPECT_EQ(cut["version"], 3);
  EXPECT_EQ(cut["turns"][1]["version"], 3);
  EXPECT_THAT(second["message"]["content"].get<std::string>(),
              testing::StartsWith(cut["turns"][1]["message"]["content"].get<std::string>()));
  const json again =
      Post("/talk/turns", {{"parent", 3}, {"prompt", ""}, {"seed", 2}, {"max_tokens", 7}});
  EXPECT_EQ(again["kind"], "continuation");
  EXPECT_EQ(again["message"], second["message"]);
  EXPECT_EQ(Tokens("talk"), tokens);
  // And messages go on from that.
  const json third = Post("/talk/turns", Turn(4, "More.", 3));
  EXPECT_EQ(third["begin"], tokens.size());
  ExpectError("POST", "/talk/rewind", R"({"position": 100000})", 400, "beyond");
  // No client is to shorten the conversation for it.
  const auto beyond = Send("POST", "/v1/sessions/talk/rewind", R"({"position": 100000})");
  EXPECT_EQ(beyond->Json()["error"]["code"], nullptr);
  ExpectError("POST", "/talk/rewind", R"({"version": 77})", 404, "no version 77");
  ExpectError("POST", "/talk/fork", R"({"name": "talk"})", 409, "exists already");
}

// Each of two turns chooses one byte of a character.
TEST_F(SessionRoutesTest, ACharacterThatTwoTurnsSpell) {
  const auto only = [](absl::string_view byte) {
    const Tokenizer& tokenizer = *Model().tokenizer;
    for (int32_t id = 0; id < static_cast<int32_t>(tokenizer.size()); ++id) {
      if (tokenizer.Piece(id) == byte) return json{{absl::StrCat(id), 100}};
    }
    ADD_FAILURE() << "the vocabulary has no such byte";
    return json::object();
  };
  Post("", {{"name", "talk"}});
  json body = Turn(0, "ROMEO:", 1, 1);
  body["logit_bias"] = only("\xC3");
  EXPECT_EQ(Post("/talk/turns", body)["message"]["content"], "\xEF\xBF\xBD");
  body = {{"parent", 1}, {"prompt", ""}, {"seed", 1}, {"max_tokens", 1}, {"idempotency_key", "k"}};
  body["logit_bias"] = only("\xA9");
  const json two = Post("/talk/turns", body);
  EXPECT_EQ(two["message"]["content"], "\xC3\xA9");
  EXPECT_EQ(Post("/talk/turns", body), two);
}

TEST_F(SessionRoutesTest, RawTextWithoutATemplate) {
  Post("", {{"name", "raw"}});
  const json one =
      Post("/raw/turns", {{"parent", 0}, {"prompt", "ROMEO:\n"}, {"seed", 1}, {"max_tokens", 10}});
  const json whole =
      Ok("POST", "/v1/completions", {{"prompt", "ROMEO:\n"}, {"seed", 1}, {"max_tokens", 10}});
  EXPECT_EQ(one["text"], whole["choices"][0]["text"]);
  EXPECT_EQ(one["kind"], "raw");
  std::vector<int32_t> tokens = Tokens("raw");
  const json two =
      Post("/raw/turns", {{"parent", 1}, {"tokens", {5, 6, 7}}, {"seed", 2}, {"max_tokens", 10}});
  tokens.insert(tokens.end(), {5, 6, 7});
  EXPECT_EQ(two["text"], Alone(tokens, 2, 10));
  ExpectError("POST", "/raw/turns", Turn(2, "Hello").dump(), 400, "goes on from raw text");
  Post("", {{"name", "chat"}, {"system", "Be brief."}});
  ExpectError("POST", "/chat/turns", R"({"parent": 0, "prompt": "x"})", 400,
              "needs content or messages");
}

TEST_F(SessionRoutesTest, SavesAndLoads) {
  Post("", {{"name", "talk"}, {"system", "Be brief."}});
  json body = Turn(0, "ROMEO:");
  body["idempotency_key"] = "k";
  Post("/talk/turns", body);
  const json document = Post("/talk/save");
  const json loaded = Post("/other/load", document);
  EXPECT_EQ(loaded["version"], 1);
  EXPECT_EQ(Tokens("other"), Tokens("talk"));
  ExpectError("POST", "/talk/load", document.dump(), 409, "exists already");
  // Both go on alike.
  const json one = Post("/talk/turns", Turn(1, "On.", 5)),
             two = Post("/other/turns", Turn(1, "On.", 5));
  EXPECT_EQ(one["message"], two["message"]);
  EXPECT_EQ(Tokens("other"), Tokens("talk"));
  json bad = document;
  bad["turns"][0]["tokens"][0] = 1'000'000;
  ExpectError("POST", "/bad/load", bad.dump(), 400, "of a turn of the session is outside 0 to ");
  bad = document;
  bad["turns"][0]["tokens"] = std::vector<int>(600, 1);
  ExpectError("POST", "/bad/load", bad.dump(), 400, "more than the context's");
  bad = document;
  bad["vocabulary"] = "other";
  ExpectError("POST", "/bad/load", bad.dump(), 400, "another vocabulary");
  ExpectError("POST", "/bad/load", "{}", 400, "no saved session");
  ExpectError("POST", "/a.b/load", document.dump(), 400, "'a.b'");
}

// A session of the last version would be unreadable after its next turn.
TEST_F(SessionRoutesTest, TheLastVersion) {
  Post("", {{"name", "talk"}});
  Post("/talk/turns", Turn(0, "ROMEO:"));
  json document = Post("/talk/save");
  document["version"] = uint64_t{1} << 53;
  EXPECT_EQ(Post("/last/load", document)["version"], uint64_t{1} << 53);
  Post("/last/turns", Turn(uint64_t{1} << 53, "JULIET:"));
  EXPECT_EQ(Get("/last")["version"], (uint64_t{1} << 53) + 1);
  document["version"] = (uint64_t{1} << 53) + 1;
  ExpectError("POST", "/more/load", document.dump(), 400, "is more than 9007199254740992");
}

TEST_F(SessionRoutesTest, ClientsAreApart) {
  ASSERT_TRUE(keys_.Replace("key-of-ann ann\nkey-of-bob bob\nkey-of-nobody\n").ok());
  for (const char* key : {"key-of-ann", "key-of-bob", "key-of-nobody"}) {
    EXPECT_EQ(Send("POST", "/v1/sessions", R"({"name": "talk"})", key)->status(), 200) << key;
  }
  Send("POST", "/v1/sessions/talk/turns", Turn(0, "ROMEO:").dump(), "key-of-ann");
  EXPECT_EQ(Send("GET", "/v1/sessions/talk", "", "key-of-ann")->Json()["version"], 1);
  EXPECT_EQ(Send("GET", "/v1/sessions/talk", "", "key-of-bob")->Json()["version"], 0);
  EXPECT_EQ(Send("GET", "/v1/sessions", "", "key-of-bob")->Json()["data"].size(), 1u);
  ExpectError("GET", "/talk", "", 401, "not known", "key-of-eve");
  // The lines of keys move.
  ASSERT_TRUE(keys_.Replace("key-of-nobody\nkey-of-bob bob\nanother-key ann\n").ok());
  Start();
  EXPECT_EQ(Send("GET", "/v1/sessions/talk", "", "another-key")->Json()["version"], 1);
  EXPECT_EQ(Send("GET", "/v1/sessions/talk", "", "key-of-nobody")->Json()["version"], 0);
}

TEST_F(SessionRoutesTest, RefusesWhatItDoesNotKnow) {
  Post("", {{"name", "talk"}});
  ExpectError("POST", "", R"({"name": "a b"})", 400, "'a b'");
  ExpectError("POST", "", R"({"name": 7})", 400, "name must be a string");
  ExpectError("POST", "", R"({"temperature": 1})", 400, "temperature");
  ExpectError("POST", "", "{", 400, "not JSON");
  ExpectError("POST", "", R"({"messages": [{"role": "wizard", "content": ""}]})", 400, "role");
  ExpectError("POST", "/talk/turns", R"({"content": "x"})", 400, "parent must be given");
  ExpectError("POST", "/talk/turns", R"({"parent": 0})", 400, "must be given, and only one");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "content": "x", "prompt": "y"})", 400,
              "only one");
  ExpectError("POST", "/talk/turns", R"({"parent": -1, "content": "x"})", 400, "parent");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "content": "x", "magic": 1})", 400, "magic");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "content": "x", "n": 2})", 400,
              "n must be 1");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "content": "x", "logprobs": true})", 400,
              "logprobs");
  ExpectError("POST", "/talk/turns",
              R"({"parent": 0, "content": "x", "response_format": {"type": "json_object"}})", 400,
              "format of the answer");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "prompt": "x", "grammar": "root ::= [a]"})",
              400, "format of the answer");
  Post("", {{"name", "tools"}, {"tools", {{{"type", "function"}, {"function", {{"name", "f"}}}}}}});
  ExpectError("POST", "/tools/turns", R"({"parent": 0, "content": "x", "tool_choice": "required"})",
              400, "tool_choice can only be auto or none in a session");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "prompt": ["x", "y"]})", 400, "one prompt");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "tokens": [99999999]})", 400, "99999999");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "tokens": "x"})", 400, "tokens");
  ExpectError("POST", "/talk/turns", R"({"parent": 0, "content": "x", "tools": [{}]})", 400,
              "when the session is made");
  ExpectError(
      "POST", "/talk/turns",
      json{{"parent", 0}, {"content", "x"}, {"idempotency_key", std::string(201, 'k')}}.dump(), 400,
      "more than 200");
  ExpectError("POST", "/talk/turns", Turn(0, std::string(4000, 'x')).dump(), 400, "tokens");
  ExpectError("POST", "/nobody/turns", Turn(0, "x").dump(), 404, "no session nobody");
  ExpectError("POST", "/talk/rewind", "{}", 400, "must be given");
  ExpectError("POST", "/talk/rewind", R"({"version": 0, "position": 0})", 400, "cannot be given");
  ExpectError("GET", "/talk?tokens=2", "", 400, "tokens=1");
  ExpectError("POST", "/talk/dance", "", 404, "no POST");
  ExpectError("GET", "/talk/turns", "", 404, "no GET");
  EXPECT_EQ(Get("/talk")["version"], 0);
}

}  // namespace
}  // namespace inlay::serve
