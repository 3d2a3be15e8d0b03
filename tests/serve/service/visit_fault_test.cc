// Errors that are told while there is no memory: whatever allocation fails, there is a reply.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/out_of_memory.h"
#include "serve/service/visit.h"
#include "tests/failing_memory.h"
#include "tests/serve/service/fake_reply.h"

namespace inlay::serve {
namespace {

using failing_memory::Fault;

// Keeps what it is given without taking memory.
class KeptReply final : public HttpReply {
 public:
  void Send(int status, absl::string_view, std::string body, HttpHeaders headers) override {
    status_ = status;
    body_ = std::move(body);
    headers_ = std::move(headers);
  }
  void StartStream(int, absl::string_view, HttpHeaders) override {}
  void Write(std::string) override {}
  void Finish() override {}
  void FailWithoutMemory() noexcept override { status_ = 503; }
  void OnGone(std::function<void()>) override {}

  int status() const { return status_; }
  const std::string& body() const { return body_; }

 private:
  int status_ = 0;
  std::string body_;
  HttpHeaders headers_;
};

TEST(VisitFaultTest, AnErrorIsAReplyAtEveryAllocationThatFails) {
  for (const Protocol protocol : {Protocol::kInlay, Protocol::kMessages}) {
    int failures = 0;
    for (bool has_failed = true; has_failed;) {
      const auto reply = std::make_shared<KeptReply>();
      const Visit visit{.request = {}, .reply = reply, .client = {}, .protocol = protocol};
      failing_memory::FailAfter(failures, Fault::kFromThenOn);
      visit.Fail(OutOfMemoryError("this request"));
      failing_memory::Stop();
      has_failed = failing_memory::has_failed;
      EXPECT_EQ(reply->status(), 503);
      EXPECT_EQ(reply->body().empty(), has_failed);
      if (has_failed) ++failures;
    }
    EXPECT_GT(failures, 3);
  }
}

// What a client does by itself is to come back; see RetryHeaders.
TEST(VisitFaultTest, WhatMayBeRepeatedSaysSo) {
  const auto header = [](const absl::Status& status) {
    const auto reply = std::make_shared<FakeReply>();
    Visit{.request = {}, .reply = reply, .client = {}, .protocol = Protocol::kInlay}.Fail(status);
    return reply->Header("Retry-After");
  };
  EXPECT_EQ(header(OutOfMemoryError("this request")), "1");
  EXPECT_EQ(header(absl::ResourceExhaustedError("the queue is full")), "1");
  EXPECT_EQ(header(absl::UnavailableError("the store of sessions does not answer")), "1");
  EXPECT_EQ(header(absl::InvalidArgumentError("no")), "");
  EXPECT_EQ(header(absl::DeadlineExceededError("late")), "");
}

}  // namespace
}  // namespace inlay::serve
