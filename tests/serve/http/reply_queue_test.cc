#include "serve/http/reply_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/match.h"

namespace inlay::serve {
namespace {

class CountingSender final : public ReplySender {
 public:
  bool Wake() noexcept override {
    ++wakes;
    return true;
  }
  bool ends_after_reply() const override { return ends; }

  int wakes = 0;
  bool ends = false;
};

class ReplyQueueTest : public ::testing::Test {
 protected:
  // What was queued since the last call.
  std::string Take(ReplyQueue::Outcome outcome) {
    std::string bytes;
    EXPECT_EQ(queue_->Take(bytes), outcome);
    return bytes;
  }

  CountingSender sender_;
  std::shared_ptr<ReplyQueue> queue_ = std::make_shared<ReplyQueue>(ReplyForm(), 100, &sender_);
};

TEST_F(ReplyQueueTest, ManyPiecesAreTakenAsOne) {
  queue_->StartStream(200, "text/plain", {});
  queue_->Sent(Take(ReplyQueue::Outcome::kOpen).size());
  sender_.wakes = 0;
  for (int i = 0; i < 5; ++i) queue_->Write("ab");
  EXPECT_EQ(sender_.wakes, 1);
  EXPECT_EQ(Take(ReplyQueue::Outcome::kOpen),
            "2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n2\r\nab\r\n");
  EXPECT_EQ(Take(ReplyQueue::Outcome::kOpen), "");
  queue_->Write("c");
  queue_->Finish();
  EXPECT_EQ(sender_.wakes, 2);
  EXPECT_EQ(Take(ReplyQueue::Outcome::kFinished), "1\r\nc\r\n0\r\n\r\n");
}

TEST_F(ReplyQueueTest, BytesThatWaitAreCountedUntilTheyAreSent) {
  queue_->StartStream(200, "text/plain", {});
  queue_->Sent(Take(ReplyQueue::Outcome::kOpen).size());
  // A piece may be longer than the limit: only what waits before it counts.
  queue_->Write(std::string(500, 'x'));
  const size_t size = Take(ReplyQueue::Outcome::kOpen).size();
  queue_->Sent(size - 99);
  queue_->Write("x");  // 99 bytes wait, then 105
  Take(ReplyQueue::Outcome::kOpen);
  queue_->Write("x");
  Take(ReplyQueue::Outcome::kBroken);
}

TEST_F(ReplyQueueTest, WhatWasDroppedIsKnown) {
  queue_->Abandon();
  EXPECT_EQ(sender_.wakes, 1);
  Take(ReplyQueue::Outcome::kLost);
  queue_ = std::make_shared<ReplyQueue>(ReplyForm(), 100, &sender_);
  queue_->FailWithoutMemory();
  queue_->Abandon();
  Take(ReplyQueue::Outcome::kNoMemory);
  queue_ = std::make_shared<ReplyQueue>(ReplyForm(), 100, &sender_);
  queue_->StartStream(200, "text/plain", {});
  queue_->Abandon();
  Take(ReplyQueue::Outcome::kBroken);
  queue_ = std::make_shared<ReplyQueue>(ReplyForm(), 100, &sender_);
  queue_->Send(200, "text/plain", "x", {});
  queue_->Abandon();
  EXPECT_TRUE(absl::EndsWith(Take(ReplyQueue::Outcome::kFinished), "\r\n\r\nx"));
}

TEST_F(ReplyQueueTest, NobodyIsCalledOnceItIsClosed) {
  queue_->StartStream(200, "text/plain", {});
  queue_->Close();
  sender_.wakes = 0;
  queue_->Write("a");
  queue_->Finish();
  queue_->Abandon();
  queue_->Send(200, "text/plain", "", {});
  queue_->FailWithoutMemory();
  EXPECT_EQ(sender_.wakes, 0);
}

TEST_F(ReplyQueueTest, TheSenderMayEndTheConnectionUntilTheReplyBegins) {
  sender_.ends = true;  // after the queue was made
  queue_->Send(200, "text/plain", "", {});
  EXPECT_FALSE(queue_->KeepsConnection());
  EXPECT_TRUE(absl::StrContains(Take(ReplyQueue::Outcome::kFinished), "Connection: close\r\n"));
}

TEST_F(ReplyQueueTest, TheConnectionEndsAfterAStreamToHttp10) {
  ReplyForm form;
  form.http_1_1 = false;
  queue_ = std::make_shared<ReplyQueue>(form, 100, &sender_);
  EXPECT_TRUE(queue_->KeepsConnection());
  queue_->StartStream(200, "text/plain", {});
  EXPECT_FALSE(queue_->KeepsConnection());
  queue_->Sent(Take(ReplyQueue::Outcome::kOpen).size());
  queue_->Write("abc");
  queue_->Finish();
  EXPECT_TRUE(Take(ReplyQueue::Outcome::kFinished) == "abc");
}

}  // namespace
}  // namespace inlay::serve
