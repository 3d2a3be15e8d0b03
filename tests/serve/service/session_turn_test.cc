// A turn on its way, as those see it who come while it is saved.
#include "serve/service/session_turn.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "io/store/state_store_file.h"
#include "nlohmann/json.hpp"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/gated_store.h"
#include "tests/serve/sessions/session_maker.h"
#include "tests/temp_folder.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

class RunningTurnTest : public testing::Test {
 protected:
  // A turn of the session "talk", which is made with one turn before it.
  std::shared_ptr<RunningTurn> Begin(bool stream = true) {
    Session session = MakeSession("talk");
    AddTurn(session, SessionTurn::Kind::kAnswer, 0, {1, 2}, {3});
    auto hold = Must(store_.Acquire(client_.identity, session.name));
    EXPECT_TRUE(store_.Create(hold, client_.identity, session).ok());
    session = Must(store_.Load(hold, session.name));
    SessionTurn turn;
    turn.parent = session.version;
    turn.version = session.version + 1;
    turn.keep = 2;
    turn.given = 2;
    turn.tokens = {4, 5};
    *turn.messages = messages_;
    const auto running = std::make_shared<RunningTurn>(
        RunningTurn::Parts{.session = session,
                           .turn = turn,
                           .store = &store_,
                           .hold = std::move(hold),
                           .reader = SessionAnswerReader(AnswerFormat(), {}, "1"),
                           .stream = stream,
                           .visit = {.request = {},
                                     .reply = reply_,
                                     .client = client_,
                                     .protocol = Protocol::kChatCompletions,
                                     .failures = failures_},
                           .savers = &savers_,
                           .on_answer = nullptr});
    running->Accepted();
    return running;
  }

  const TempFolder folder_;
  const std::shared_ptr<GatedStore> states_ =
      std::make_shared<GatedStore>(std::make_shared<FileStore>(folder_.path()));
  SessionStore store_{states_, SessionLimits()};
  const ApiClient client_ = {.name = "anyone", .identity = "anyone"};
  const Json messages_ = Json::array({{{"role", "user"}, {"content", "Who follows?"}}});
  const std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  const std::shared_ptr<FakeReply> follower_ = std::make_shared<FakeReply>();
  std::vector<std::string> notes_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>(
      [this](absl::string_view sentence) { notes_.emplace_back(sentence); });
  Workers savers_{1};
};

TEST_F(RunningTurnTest, WhoFollowsBetweenItsEndAndItsSavingSeesAllOfIt) {
  const auto running = Begin();
  absl::Notification may_save;
  savers_.Add([&] { may_save.WaitForNotification(); });
  AnswerUpdate update;
  update.text = "I do.";
  EXPECT_TRUE(running->OnUpdate(update));
  AnswerEnd end;
  end.tokens = {6, 7};
  running->OnEnd(end);
  // All is said, and nothing is saved yet.
  EXPECT_TRUE(running->Follow(follower_));
  EXPECT_FALSE(follower_->finished());
  may_save.Notify();
  reply_->Wait();
  follower_->Wait();

  const std::vector<nlohmann::json> seen = follower_->Events();
  ASSERT_EQ(seen.size(), 3);
  EXPECT_EQ(seen[0]["type"], "running");
  EXPECT_EQ(seen[0]["messages"], messages_);
  EXPECT_EQ(seen[0]["begin"], 2);
  EXPECT_EQ(seen[0]["answer"], 4);
  EXPECT_EQ(seen[1], (nlohmann::json{{"type", "text"}, {"delta", "I do."}}));
  EXPECT_EQ(seen[2], reply_->Events().back());
  const Session saved = Must(store_.Load(client_.identity, "talk"));
  ASSERT_EQ(saved.turns.size(), 2);
  EXPECT_EQ(saved.Tokens(), (std::vector<int32_t>{1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(*saved.turns[1].messages, messages_);
}

TEST_F(RunningTurnTest, NobodyElseWaitsForAStoreThatHangs) {
  const auto running = Begin();
  states_->Close();
  running->OnEnd({});
  states_->WaitForOne();
  std::future<bool> asked = std::async(std::launch::async, [&] {
    running->Stop();
    running->Ping(absl::InfiniteFuture());
    running->Fail(absl::InternalError("too late"));
    return running->Follow(follower_) && !running->ended();
  });
  EXPECT_EQ(asked.wait_for(kLongWait), std::future_status::ready);
  EXPECT_THAT(reply_->body(), testing::HasSubstr(": ping"));
  EXPECT_FALSE(reply_->finished());
  states_->Open();
  ASSERT_TRUE(asked.get());
  for (const auto& reply : {reply_, follower_}) {
    reply->Wait();
    EXPECT_EQ(reply->Events().back()["type"], "turn") << reply->body();
  }
  EXPECT_EQ(Must(store_.Load(client_.identity, "talk")).turns.size(), 2u);
}

TEST_F(RunningTurnTest, TheOperatorIsToldOfAnErrorInAStream) {
  Begin()->Fail(absl::DataLossError("a logit is NaN"));
  EXPECT_THAT(reply_->body(), testing::HasSubstr("a logit is NaN"));
  EXPECT_THAT(notes_, testing::ElementsAre("a request failed (500): a logit is NaN"));
}

// Also where who has asked for the turn is told in another form than those who follow it.
TEST_F(RunningTurnTest, TheOperatorIsToldOfAnErrorOnce) {
  const auto running = Begin(/*stream=*/false);
  EXPECT_TRUE(running->Follow(follower_));
  running->Fail(absl::DataLossError("a logit is NaN"));
  EXPECT_EQ(reply_->status(), 500);
  EXPECT_EQ(follower_->Events().back()["type"], "error");
  EXPECT_THAT(notes_, testing::ElementsAre("a request failed (500): a logit is NaN"));
}

}  // namespace
}  // namespace inlay::serve
