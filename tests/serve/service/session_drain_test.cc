// Stores that take their time, and the end of a server, as sessions see them.
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "io/store/state_store_file.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/gated_store.h"
#include "tests/serve/service/session_routes_fixture.h"
#include "tests/wait_until.h"

namespace inlay::serve {
namespace {

// The states of another store, which take their time to be stored.
class SlowStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  absl::StatusOr<std::unique_ptr<StateWriter>> PutOver(absl::string_view key,
                                                       StateTag replaced) override {
    absl::SleepFor(absl::Milliseconds(wait_ms_.load()));
    return ForwardingStore::PutOver(key, replaced);
  }
  std::atomic<int> wait_ms_ = 50;
};

// Requests without a body, too, which clients that do not wait send without an end.
TEST_F(SessionRoutesTest, AStoreThatHangsKeepsSoManyRequestsWaiting) {
  class StuckStore final : public ForwardingStore {
   public:
    using ForwardingStore::ForwardingStore;
    absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
      free_.wait();
      return ForwardingStore::List(prefix);
    }
    std::promise<void> answers_;
    const std::shared_future<void> free_ = answers_.get_future().share();
  };
  const auto stuck = std::make_shared<StuckStore>(std::make_shared<FileStore>(folder_.path()));
  states_ = stuck;
  Start();
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 1030; ++i) replies.push_back(Ask(*service_, "GET", "/v1/sessions"));
  for (int i = 1024; i < 1030; ++i) EXPECT_EQ(replies[i]->status(), 429);
  stuck->answers_.set_value();
  for (const auto& reply : replies) reply->Wait();
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(replies[i]->status(), 200);
}

// Only the client of that turn waits for the store, and whoever changes something in it.
TEST_F(SessionRoutesTest, ATurnThatIsSavedKeepsNoOtherRequestWaiting) {
  const auto gated = std::make_shared<GatedStore>(std::make_shared<FileStore>(folder_.path()));
  states_ = gated;
  Start();
  for (const char* name : {"saved", "other"}) Post("", {{"name", name}});
  gated->Close();
  const auto turn = Ask(*service_, "POST", "/v1/sessions/saved/turns", Turn(0, "ROMEO:").dump());
  gated->WaitForOne();
  // More than there are threads for sessions.
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (int i = 0; i < 4; ++i) replies.push_back(Ask(*service_, "GET", "/v1/sessions/saved"));
  replies.push_back(Ask(*service_, "POST", "/v1/sessions/saved/stop"));
  replies.push_back(Ask(*service_, "GET", "/v1/sessions/other"));
  bool all_end = true;
  for (const auto& reply : replies) all_end = all_end && reply->Ends();
  EXPECT_TRUE(all_end);
  EXPECT_FALSE(turn->finished());
  gated->Open();
  turn->Wait();
  EXPECT_EQ(turn->status(), 200);
  for (const auto& reply : replies) {
    reply->Wait();
    EXPECT_EQ(reply->status(), 200) << reply->body();
  }
  EXPECT_EQ(replies[0]->Json()["running"], true);
}

// More turns end than are stored at a time, and nobody waits for them any more.
TEST_F(SessionRoutesTest, TurnsThatHaveEndedAreStoredBeforeTheServerEnds) {
  states_ = std::make_shared<SlowStore>(std::make_shared<FileStore>(folder_.path()));
  Start();
  std::vector<std::string> names;
  for (int i = 0; i < 6; ++i) {
    names.push_back(absl::StrCat("talk-", i));
    Post("", {{"name", names.back()}});
  }
  std::vector<std::shared_ptr<FakeReply>> replies;
  for (const std::string& name : names) {
    json body = Turn(0, "ROMEO:");
    body["background"] = true;
    body["stream"] = true;
    body["ignore_eos"] = true;
    replies.push_back(
        Ask(*service_, "POST", absl::StrCat("/v1/sessions/", name, "/turns"), body.dump()));
  }
  for (const auto& reply : replies) reply->WaitFor("delta");
  service_->Drain(absl::Seconds(60));
  service_ = nullptr;
  states_ = nullptr;
  Start();
  for (const std::string& name : names) {
    EXPECT_EQ(Get(absl::StrCat("/", name))["turns"].size(), 1u) << name;
  }
}

// What --drain gives no time to is computing: a turn that has ended is stored.
TEST_F(SessionRoutesTest, TurnsThatHaveEndedAreStoredWithoutTimeToDrain) {
  const auto slow = std::make_shared<SlowStore>(std::make_shared<FileStore>(folder_.path()));
  slow->wait_ms_ = 0;
  states_ = slow;
  Start();
  constexpr int kTurns = 6;
  for (int i = 0; i < kTurns; ++i) Post("", {{"name", absl::StrCat("talk-", i)}});
  slow->wait_ms_ = 300;
  for (int i = 0; i < kTurns; ++i) {
    json body = Turn(0, "ROMEO:");
    body["background"] = true;
    body["max_tokens"] = 2;
    Ask(*service_, "POST", absl::StrCat("/v1/sessions/talk-", i, "/turns"), body.dump());
  }
  const std::string ended = absl::StrCat("\ninlay_answers_total ", kTurns, "\n");
  ASSERT_TRUE(
      WaitUntil([&] { return absl::StrContains(Send("GET", "/metrics", "")->body(), ended); }));
  service_->Drain(absl::ZeroDuration());
  service_ = nullptr;
  states_ = nullptr;
  Start();
  for (int i = 0; i < kTurns; ++i)
    EXPECT_EQ(Get(absl::StrCat("/talk-", i))["turns"].size(), 1u) << i;
}

}  // namespace
}  // namespace inlay::serve
