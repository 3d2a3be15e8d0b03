// Several servers with the same sessions: in turn, and at the same time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gemma_like/chat/builtin_templates.h"
#include "io/store/state_store_memory.h"
#include "tests/serve/service/gated_store.h"
#include "tests/serve/service/session_routes_fixture.h"

namespace inlay::serve {
namespace {

using ::nlohmann::json;
using ::testing::HasSubstr;

class ReplicasTest : public ::testing::Test {
 protected:
  ReplicasTest() { Start(/*own_sessions_only=*/false); }

  // Of the second one the rows have another type, so that its bits are others.
  void Start(bool own_sessions_only, KvType second = KvType::kF32) {
    const auto states = std::make_shared<MemoryStore>();
    for (size_t i = 0; i < services_.size(); ++i) {
      gates_[i] = std::make_shared<GatedStore>(states);
      ServiceOptions options;
      options.model_name = "bard";
      options.scheduler.context = 512;
      options.scheduler.memory = size_t{64} << 20;
      options.sessions = gates_[i];
      options.own_sessions_only = own_sessions_only;
      if (i == 1) options.scheduler.kv_type = second;
      services_[i] =
          Must(Service::Create(Model(),
                               Must(ChatRenderer::CreateFrom(
                                   *Model().tokenizer, BuiltinTemplate(ChatTemplate::kChatMl))),
                               keys_, options));
    }
  }

  std::shared_ptr<FakeReply> Begin(size_t server, const std::string& path, const json& body) {
    return Ask(*services_[server], "POST", absl::StrCat("/v1/sessions", path), body.dump());
  }
  json Post(size_t server, const std::string& path, const json& body, int status = 200) {
    const auto reply = Begin(server, path, body);
    reply->Wait();
    EXPECT_EQ(reply->status(), status) << path << " " << body << reply->body();
    return reply->Json();
  }
  json Get(size_t server, const std::string& path) {
    const auto reply = Ask(*services_[server], "GET", absl::StrCat("/v1/sessions", path));
    reply->Wait();
    EXPECT_EQ(reply->status(), 200) << path << reply->body();
    return reply->Json();
  }

  ApiKeys keys_;
  std::array<std::shared_ptr<GatedStore>, 2> gates_;
  std::array<std::unique_ptr<Service>, 2> services_;
};

// Whoever of them answers, it is what one of them alone would have answered.
TEST_F(ReplicasTest, GoOnWithEachOthersSessions) {
  Post(0, "", {{"name", "shared"}});
  Post(0, "", {{"name", "alone"}});
  for (uint64_t i = 0; i < 6; ++i) {
    const json body = Turn(i, absl::StrCat("Line ", i), static_cast<int>(i), 12);
    const json one = Post(0, "/alone/turns", body);
    const json turn = Post(i % 2, "/shared/turns", body);
    EXPECT_EQ(turn["message"], one["message"]) << i;
    EXPECT_EQ(turn["version"], i + 1);
    // Neither has a copy of its own that could be stale.
    for (size_t server : {0, 1}) EXPECT_EQ(Get(server, "/shared")["version"], i + 1);
  }
  EXPECT_EQ(Get(1, "/shared?tokens=1")["tokens"], Get(0, "/alone?tokens=1")["tokens"]);
  Post(1, "/shared/rewind", {{"version", 3}});
  EXPECT_EQ(Post(0, "/shared/turns", Turn(6, "Line 3"), 409)["error"]["version"], 7);
  EXPECT_EQ(Post(0, "/shared/turns", Turn(7, "Line 3", 3, 12))["message"],
            Get(1, "/alone")["turns"][3]["message"]);
  Post(1, "/shared/fork", {{"name", "fork"}});
  EXPECT_EQ(Get(0, "/fork")["version"], 8);
}

// A turn that is computed while another server adds one is not stored: the other came first.
TEST_F(ReplicasTest, OneOfTwoTurnsIsStored) {
  Post(0, "", {{"name", "talk"}});
  gates_[0]->Close();
  const auto late = Begin(0, "/talk/turns", Turn(0, "ROMEO:"));
  gates_[0]->WaitForOne();
  const json won = Post(1, "/talk/turns", Turn(0, "JULIET:"));
  gates_[0]->Open();
  late->Wait();
  EXPECT_EQ(late->status(), 409);
  EXPECT_THAT(late->body(), HasSubstr("talk was changed or deleted by another server"));
  const json shown = Get(0, "/talk");
  ASSERT_EQ(shown["turns"].size(), 1u);
  EXPECT_EQ(shown["turns"][0]["message"], won["message"]);
  // A rewind and a deletion come first as well.
  gates_[0]->Close();
  const auto second = Begin(0, "/talk/turns", Turn(1, "ROMEO:"));
  gates_[0]->WaitForOne();
  Post(1, "/talk/rewind", {{"version", 0}});
  gates_[0]->Open();
  second->Wait();
  EXPECT_EQ(second->status(), 409);
  EXPECT_EQ(Get(0, "/talk")["length"], 0);
  gates_[0]->Close();
  const auto third = Begin(0, "/talk/turns", Turn(2, "ROMEO:"));
  gates_[0]->WaitForOne();
  Ask(*services_[1], "DELETE", "/v1/sessions/talk")->Wait();
  gates_[0]->Open();
  third->Wait();
  EXPECT_EQ(third->status(), 404);
  EXPECT_EQ(Get(1, "")["data"].size(), 0u);
}

// A request that was sent to both, as a client does that hears nothing from the first one: both
// reply with the one turn that is stored.
TEST_F(ReplicasTest, OneRequestToTwoServersIsOneTurn) {
  struct Case {
    bool seed, stream;
  };
  uint64_t version = 0;
  Post(0, "", {{"name", "talk"}});
  for (const Case& c : {Case{true, false}, Case{true, true}, Case{false, false}}) {
    json body = Turn(version, "ROMEO:", 5, 20);
    if (!c.seed) body.erase("seed");
    body["idempotency_key"] = absl::StrCat("key ", version);
    body["stream"] = c.stream;
    gates_[0]->Close();
    const auto first = Begin(0, "/talk/turns", body);
    gates_[0]->WaitForOne();
    const auto again = Begin(1, "/talk/turns", body);
    again->Wait();
    gates_[0]->Open();
    first->Wait();
    EXPECT_EQ(first->status(), 200) << first->body();
    const json one = c.stream ? first->Events().back() : first->Json();
    const json two = c.stream ? again->Events().back() : again->Json();
    EXPECT_EQ(one["version"], ++version) << one;
    EXPECT_EQ(one["message"], two["message"]);
    EXPECT_EQ(one["seed"], two["seed"]);
    EXPECT_EQ(Get(0, "/talk")["turns"].size(), version);
  }
  // A stream whose answer is another one than the stored turn's ends with an error: what it has
  // said is not what was stored.
  json body = Turn(version, "ROMEO:", 5, 20);
  body.erase("seed");
  body["temperature"] = 2.0;
  body["stream"] = true;
  body["idempotency_key"] = "streamed";
  gates_[0]->Close();
  const auto first = Begin(0, "/talk/turns", body);
  gates_[0]->WaitForOne();
  Begin(1, "/talk/turns", body)->Wait();
  gates_[0]->Open();
  first->Wait();
  EXPECT_EQ(first->Events().back()["type"], "error");
  // The same key for another request is none.
  body["parent"] = ++version;
  ASSERT_EQ(Get(0, "/talk")["version"], version);
  body["stream"] = false;
  body["idempotency_key"] = "twice";
  json other = body;
  other["content"] = "JULIET:";
  gates_[0]->Close();
  const auto conflict = Begin(0, "/talk/turns", body);
  gates_[0]->WaitForOne();
  Post(1, "/talk/turns", other);
  gates_[0]->Open();
  conflict->Wait();
  EXPECT_EQ(conflict->status(), 409);
}

// A server whose bits are others goes on from the tokens alone, or refuses to.
TEST_F(ReplicasTest, OfAnotherFingerprint) {
  for (const bool own_only : {false, true}) {
    SCOPED_TRACE(own_only);
    Start(own_only, KvType::kBF16);
    ASSERT_NE(services_[0]->service_fingerprint(), services_[1]->service_fingerprint());
    Post(0, "", {{"name", "talk"}});
    const json first = Post(0, "/talk/turns", Turn(0, "ROMEO:", 1, 20));
    EXPECT_EQ(first["system_fingerprint"], services_[0]->service_fingerprint());
    if (own_only) {
      const json refused = Post(1, "/talk/turns", Turn(1, "JULIET:"), 400);
      EXPECT_THAT(refused["error"]["message"].get<std::string>(),
                  HasSubstr(absl::StrCat("version 1 of the session talk was computed by ",
                                         services_[0]->service_fingerprint())));
      EXPECT_EQ(Get(1, "/talk")["version"], 1) << "it may be read";
      EXPECT_EQ(Post(0, "/talk/turns", Turn(1, "JULIET:"))["version"], 2);
      continue;
    }
    const json turn = Post(1, "/talk/turns", Turn(1, "JULIET:", 2, 20));
    EXPECT_EQ(turn["system_fingerprint"], services_[1]->service_fingerprint());
    std::vector<int32_t> prompt = Get(1, "/talk?tokens=1")["tokens"];
    prompt.resize(turn["answer"]);
    const auto alone = Ask(*services_[1], "POST", "/v1/completions",
                           json({{"prompt", prompt}, {"seed", 2}, {"max_tokens", 20}}).dump());
    alone->Wait();
    EXPECT_EQ(turn["message"]["content"], alone->Json()["choices"][0]["text"]);
  }
}

// Many clients of one session at both: each version has one turn, that of the client who was told.
TEST_F(ReplicasTest, EachVersionHasOneTurn) {
  Post(0, "", {{"name", "talk"}});
  for (uint64_t version = 0; version < 8; ++version) {
    std::vector<std::shared_ptr<FakeReply>> replies(6);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < replies.size(); ++i) {
      threads.emplace_back([&, i] {
        replies[i] = Begin(i % 2, "/talk/turns", Turn(version, absl::StrCat("To ", i), 1, 3));
        replies[i]->Wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
    const json shown = Get(version % 2, "/talk");
    ASSERT_EQ(shown["turns"].size(), version + 1);
    size_t won = 0;
    for (size_t i = 0; i < replies.size(); ++i) {
      if (replies[i]->status() == 409) continue;
      ASSERT_EQ(replies[i]->status(), 200) << replies[i]->body();
      ++won;
      EXPECT_EQ(shown["turns"][version]["messages"][0]["content"], absl::StrCat("To ", i));
    }
    EXPECT_EQ(won, 1u);
  }
}

}  // namespace
}  // namespace inlay::serve
