// A turn on its way, as those see it who come while it is saved.
#include "serve/service/session_turn.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "io/store/state_store.h"
#include "nlohmann/json.hpp"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/sessions/session_maker.h"
#include "tests/temp_folder.h"

namespace inlay::serve {
namespace {

TEST(RunningTurn, WhoFollowsBetweenItsEndAndItsSavingSeesAllOfIt) {
  const TempFolder folder;
  SessionStore store(std::make_shared<FileStore>(folder.path()), SessionLimits());
  const ApiClient client = {.name = "anyone", .identity = "anyone"};
  Session session = MakeSession("talk");
  AddTurn(session, SessionTurn::Kind::kAnswer, 0, {1, 2}, {3});
  auto hold = Must(store.Acquire(client.identity, session.name));
  ASSERT_TRUE(store.Create(hold, client.identity, session).ok());
  session = Must(store.Load(hold, session.name));

  SessionTurn turn;
  turn.parent = session.version;
  turn.version = session.version + 1;
  turn.keep = 2;
  turn.given = 2;
  turn.tokens = {4, 5};
  turn.messages = Json::array({{{"role", "user"}, {"content", "Who follows?"}}});

  Workers savers(1);
  absl::Notification may_save;
  savers.Add([&] { may_save.WaitForNotification(); });
  const auto reply = std::make_shared<FakeReply>(), follower = std::make_shared<FakeReply>();
  const auto running = std::make_shared<RunningTurn>(
      RunningTurn::Parts{.session = session,
                         .turn = turn,
                         .store = &store,
                         .hold = std::move(hold),
                         .reader = SessionAnswerReader(AnswerFormat(), {}, "1"),
                         .stream = true,
                         .visit = {{}, reply, client, Protocol::kChatCompletions},
                         .savers = &savers,
                         .on_answer = nullptr});
  running->Accepted();
  AnswerUpdate update;
  update.text = "I do.";
  EXPECT_TRUE(running->OnUpdate(update));
  AnswerEnd end;
  end.tokens = {6, 7};
  running->OnEnd(end);
  // All is said, and nothing is saved yet.
  EXPECT_TRUE(running->Follow(follower));
  EXPECT_FALSE(follower->finished());
  may_save.Notify();
  reply->Wait();
  follower->Wait();

  const std::vector<nlohmann::json> seen = follower->Events();
  ASSERT_EQ(seen.size(), 3);
  EXPECT_EQ(seen[0]["type"], "running");
  EXPECT_EQ(seen[0]["messages"], turn.messages);
  EXPECT_EQ(seen[0]["begin"], 2);
  EXPECT_EQ(seen[0]["answer"], 4);
  EXPECT_EQ(seen[1], (nlohmann::json{{"type", "text"}, {"delta", "I do."}}));
  EXPECT_EQ(seen[2], reply->Events().back());
  const Session saved = Must(store.Load(client.identity, "talk"));
  ASSERT_EQ(saved.turns.size(), 2);
  EXPECT_EQ(saved.Tokens(), (std::vector<int32_t>{1, 2, 4, 5, 6, 7}));
  EXPECT_EQ(saved.turns[1].messages, turn.messages);
}

}  // namespace
}  // namespace inlay::serve
