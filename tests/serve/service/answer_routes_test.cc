// Requests that wait for answers, which a test gives: what they keep meanwhile, and who is told of
// an error.
#include "serve/service/answer_routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gemma_like/chat/chat_renderer.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "serve/http/held_body.h"
#include "serve/service/answer_record.h"
#include "serve/service/replay.h"
#include "serve/service/session_probabilities.h"
#include "tests/gemma_like/model_fixture.h"
#include "tests/must.h"
#include "tests/serve/service/fake_reply.h"
#include "tests/serve/service/fake_scheduler.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class AnswerRoutesTest : public ::testing::Test {
 protected:
  // A request of a client whose owner is 3. Its body counts in bodies_ as long as it is held.
  Visit MakeVisit(Protocol protocol, std::string body = "") {
    Visit visit{.request = {},
                .reply = reply_,
                .client = {.name = "a", .owner = 3},
                .protocol = protocol,
                .failures = failures_};
    visit.request.held_body = std::make_shared<HeldBody>(bodies_);
    EXPECT_TRUE(visit.request.held_body->GrowTo(body.size(), std::numeric_limits<size_t>::max()));
    visit.request.body = std::move(body);
    return visit;
  }
  std::unique_ptr<AnswerRoutes> Make() {
    return std::make_unique<AnswerRoutes>(model_, no_chats_, options_, fingerprints_, &scheduler_,
                                          grammars_);
  }
  // Every route that waits for an answer without a chat: each sends one request to the scheduler.
  std::vector<std::function<void()>> Ways(AnswerRoutes& routes) {
    return {
        [&] { routes.Answer(MakeVisit(Protocol::kCompletions, R"({"prompt": "a"})")); },
        [&] {
          AnswerRecord record;
          record.prompt = {5, 6};
          ReplayAnswer(scheduler_, grammars_, "", MakeVisit(Protocol::kInlay, RecordLine(record)));
        },
        [&] {
          EXPECT_TRUE(ReplyProbabilities({*model_.tokenizer, scheduler_, writers_}, session_, {},
                                         MakeVisit(Protocol::kInlay, R"({"begin": 1, "end": 2})"))
                          .ok());
        }};
  }

  const LoadedModel model_ = LoadBard();
  const absl::StatusOr<ChatRenderer> no_chats_ = absl::InvalidArgumentError("no chats");
  const Fingerprints fingerprints_;
  ServiceOptions options_;
  AnswerGrammars grammars_{*model_.tokenizer};
  Session session_ = [] {
    Session session;
    session.name = "s";
    session.turns.emplace_back().tokens = {5, 6};
    return session;
  }();
  std::vector<std::string> notes_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>(
      [this](absl::string_view sentence) { notes_.emplace_back(sentence); });
  const std::shared_ptr<std::atomic<size_t>> bodies_ = std::make_shared<std::atomic<size_t>>(0);
  std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  FakeScheduler scheduler_;
  Workers writers_{1};  // last: it writes the reply
};

// With prefixes shared, clients take turns all the same.
TEST_F(AnswerRoutesTest, OwnersAreTheClientsWhereverPrefixesAre) {
  const Visit visit = MakeVisit(Protocol::kCompletions);
  for (const bool shared : {false, true}) {
    options_.share_prefixes = shared;
    const AnswerRequest request = Must(Make()->MakeRequest(Call(), visit));
    EXPECT_EQ(request.owner, 3);
    EXPECT_EQ(request.prefix_owner, shared ? 0 : 3);
  }
}

// The prompts before the one that finds no place end as cancelled, which is not what has happened
// to the request.
TEST_F(AnswerRoutesTest, APromptThatFindsNoPlaceIsTheReply) {
  scheduler_.places = 1;
  const auto routes = Make();
  routes->Answer(MakeVisit(Protocol::kCompletions, R"({"prompt": ["a", "b"]})"));
  EXPECT_THAT(scheduler_.asked, SizeIs(1));
  EXPECT_EQ(reply_->status(), 429) << reply_->body();
  EXPECT_EQ(reply_->Header("Retry-After"), "1");
  EXPECT_THAT(reply_->body(), HasSubstr("too many requests wait already"));
}

// An answer may take long: the room for bodies is that of other requests then.
TEST_F(AnswerRoutesTest, NoBodyIsHeldWhileAnAnswerIsComputed) {
  const auto routes = Make();
  for (const auto& ask : Ways(*routes)) {
    reply_ = std::make_shared<FakeReply>();
    ask();
    EXPECT_EQ(*bodies_, 0u) << scheduler_.asked.size();
    scheduler_.End(scheduler_.asked.size());
    reply_->Wait();
    EXPECT_EQ(reply_->status(), 200) << reply_->body();
  }
  EXPECT_THAT(scheduler_.asked, SizeIs(3));
}

TEST_F(AnswerRoutesTest, TheOperatorIsToldOfTheServersErrors) {
  const auto routes = Make();
  for (const auto& ask : Ways(*routes)) {
    reply_ = std::make_shared<FakeReply>();
    notes_.clear();
    ask();
    const std::string message = "way " + std::string(scheduler_.asked.size(), 'i') + " fails";
    scheduler_.End(scheduler_.asked.size(), absl::DataLossError(message));
    EXPECT_EQ(reply_->status(), 500);
    EXPECT_THAT(notes_, ElementsAre("a request failed (500): " + message));
  }
  EXPECT_THAT(scheduler_.asked, SizeIs(3));
}

}  // namespace
}  // namespace inlay::serve
