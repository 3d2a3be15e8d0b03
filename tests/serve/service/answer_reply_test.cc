// One client's reply: what ends it, and that nothing follows.
#include "serve/service/answer_reply.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gemma_like/chat/answer_format.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/serve/service/fake_reply.h"

namespace inlay::serve {
namespace {

// The reply itself fails the test when something is written after its end.
class AnswerReplyTest : public testing::TestWithParam<bool> {
 protected:
  std::shared_ptr<AnswerReply> Make() {
    Call call;
    call.protocol = Protocol::kCompletions;
    call.prompts = {std::string("a")};
    call.stream = GetParam();
    return std::make_shared<AnswerReply>(std::move(call), ReplyHeader{}, *tokenizer_,
                                         AnswerReply::Reading{}, VisitOf(Protocol::kCompletions), 1,
                                         nullptr, writers_);
  }

  // Of a chat whose answers may have one call.
  std::shared_ptr<AnswerReply> MakeWithOneCall(const AnswerFormat& format, bool in_thinking) {
    Call call;
    call.protocol = Protocol::kChatCompletions;
    call.stream = GetParam();
    call.one_call = true;
    return std::make_shared<AnswerReply>(
        std::move(call), ReplyHeader{}, *tokenizer_,
        AnswerReply::Reading{.format = &format,
                             .options = {.in_thinking = in_thinking, .calls = true}},
        VisitOf(Protocol::kChatCompletions), 1, nullptr, writers_);
  }

  Visit VisitOf(Protocol protocol) const {
    return {
        .request = {}, .reply = reply_, .client = {}, .protocol = protocol, .failures = failures_};
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MustLoad(SpmBase());
  std::shared_ptr<FakeReply> reply_ = std::make_shared<FakeReply>();
  std::vector<std::string> notes_;
  const std::shared_ptr<Failures> failures_ = std::make_shared<Failures>(
      [this](absl::string_view sentence) { notes_.emplace_back(sentence); });
  Workers writers_{1};
};

INSTANTIATE_TEST_SUITE_P(Forms, AnswerReplyTest, testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "Streamed" : "Whole");
});

TEST_P(AnswerReplyTest, NothingFollowsTheEnd) {
  const auto answers = Make();
  const auto listener = answers->ListenerOf(0);
  answers->Accepted();
  listener->OnStart({});
  answers->Ping(absl::InfiniteFuture());
  listener->OnEnd({});
  reply_->Wait();
  const std::string body = reply_->body();
  answers->Ping(absl::InfiniteFuture());
  answers->Fail(absl::InternalError("too late"));
  EXPECT_EQ(reply_->body(), body);
  EXPECT_EQ(reply_->status(), 200);
}

// A long reply takes its time, which the thread that computes all answers has not.
TEST_P(AnswerReplyTest, AWholeReplyIsWrittenOnAnotherThread) {
  std::promise<void> free;
  writers_.Add([&] { free.get_future().wait(); });
  const auto answers = Make();
  const auto listener = answers->ListenerOf(0);
  answers->Accepted();
  listener->OnStart({});
  listener->OnEnd({});
  const bool is_stream = GetParam();
  EXPECT_EQ(reply_->finished(), is_stream);
  answers->Fail(absl::InternalError("too late"));
  free.set_value();
  reply_->Wait();
  EXPECT_EQ(reply_->status(), 200);
}

// Calls in thoughts that never ended are known at the end alone.
TEST_P(AnswerReplyTest, AnAnswerThatMayHaveOneCallHasOne) {
  const AnswerFormat format = AnswerFormat::Of("<tool_call>\n</tool_call></think>");
  const auto answers = MakeWithOneCall(format, /*in_thinking=*/true);
  const auto listener = answers->ListenerOf(0);
  answers->Accepted();
  listener->OnStart({});
  for (const char* name : {"f", "g"}) {
    const std::string text =
        absl::StrCat("<tool_call>\n{\"name\": \"", name, "\", \"arguments\": {}}\n</tool_call>\n");
    listener->OnUpdate({.text = text, .chosen = {}, .generated = 5});
  }
  AnswerEnd end;
  end.usage.completion_tokens = 10;
  listener->OnEnd(end);
  reply_->Wait();
  EXPECT_THAT(reply_->body(), testing::HasSubstr(R"("name":"f")"));
  EXPECT_THAT(reply_->body(), testing::Not(testing::HasSubstr(R"("name":"g")")));
  EXPECT_THAT(reply_->body(), testing::HasSubstr(R"("finish_reason":"tool_calls")"));
}

// A cut answer says that it is one, and its drafts of calls are no calls.
TEST_P(AnswerReplyTest, AnAnswerThatWasCutSaysSo) {
  const AnswerFormat format = AnswerFormat::Of("List of tools: [");
  for (const bool in_thinking : {false, true}) {
    const auto reply = reply_ = std::make_shared<FakeReply>();
    const auto answers = MakeWithOneCall(format, in_thinking);
    const auto listener = answers->ListenerOf(0);
    answers->Accepted();
    listener->OnStart({});
    listener->OnUpdate({.text = "<|tool_call_start|>[f()]", .chosen = {}, .generated = 5});
    AnswerEnd end;
    end.reason = StopReason::kMaxTokens;
    end.usage.completion_tokens = 5;
    listener->OnEnd(end);
    reply->Wait();
    EXPECT_EQ(absl::StrContains(reply->body(), R"("name":"f")"), !in_thinking) << reply->body();
    EXPECT_THAT(reply->body(), testing::HasSubstr(R"("finish_reason":"length")"));
  }
}

TEST_P(AnswerReplyTest, NothingFollowsAFailure) {
  const auto answers = Make();
  const auto listener = answers->ListenerOf(0);
  answers->Accepted();
  answers->Fail(absl::InternalError("first"));
  ASSERT_TRUE(reply_->finished());
  const std::string body = reply_->body();
  EXPECT_THAT(body, testing::HasSubstr("first"));
  answers->Ping(absl::InfiniteFuture());
  answers->Fail(absl::InternalError("second"));
  listener->OnStart({});
  listener->OnEnd({});
  EXPECT_EQ(reply_->body(), body);
}

// In whatever form the client is told.
TEST_P(AnswerReplyTest, TheOperatorIsToldOfTheServersErrors) {
  const auto answers = Make();
  answers->Accepted();
  answers->Fail(absl::DataLossError("a logit is NaN"));
  EXPECT_THAT(reply_->body(), testing::HasSubstr("a logit is NaN"));
  EXPECT_THAT(notes_, testing::ElementsAre("a request failed (500): a logit is NaN"));
}

}  // namespace
}  // namespace inlay::serve
