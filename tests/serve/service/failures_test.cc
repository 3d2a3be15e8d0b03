#include "serve/service/failures.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/out_of_memory.h"
#include "base/unreadable_weights.h"

namespace inlay::serve {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class FailuresTest : public ::testing::Test {
 protected:
  std::vector<std::string> notes_;
  Failures failures_{[this](absl::string_view sentence) { notes_.emplace_back(sentence); }};
};

TEST_F(FailuresTest, OneSentenceForEachKindOfItsOwnErrors) {
  for (int i = 0; i < 3; ++i) {
    const absl::Status damaged = absl::DataLossError(absl::StrCat("logit ", i, " is NaN"));
    EXPECT_EQ(failures_.ForClient(damaged), damaged);
    const absl::Status no_memory = OutOfMemoryError("this answer");
    EXPECT_EQ(failures_.ForClient(no_memory), no_memory);
    failures_.TellRefusal(503, "the server has as many connections as it serves");
    failures_.TellRefusal(500, "the server has dropped the request");
  }
  EXPECT_THAT(
      notes_,
      ElementsAre("a request failed (500): logit 0 is NaN",
                  "a request failed (503): there is not enough memory for this answer",
                  "a request was refused (503): the server has as many connections as it serves",
                  "a request was refused (500): the server has dropped the request"));
}

// Sentences that all differ must not fill the memory, nor the log.
TEST_F(FailuresTest, KindsAreBounded) {
  for (int i = 0; i < 200; ++i)
    (void)failures_.ForClient(absl::InternalError(std::string(static_cast<size_t>(i + 1), 'x')));
  EXPECT_THAT(notes_, SizeIs(65));
}

TEST_F(FailuresTest, WhatClientsDoIsNotNoted) {
  for (const absl::Status& status :
       {absl::OkStatus(), absl::InvalidArgumentError("no"), absl::UnauthenticatedError("no"),
        absl::NotFoundError("no"), absl::ResourceExhaustedError("the queue is full"),
        absl::UnimplementedError("no"), absl::CancelledError("no"),
        absl::DeadlineExceededError("late"), absl::UnavailableError("shutting down")}) {
    EXPECT_EQ(failures_.ForClient(status), status);
  }
  for (const int status : {400, 401, 403, 404, 408, 413, 415, 431, 501})
    failures_.TellRefusal(status, "no");
  EXPECT_THAT(notes_, IsEmpty());
  EXPECT_TRUE(failures_.weights().ok());
}

TEST_F(FailuresTest, AModelThatCannotBeReadIsNotedOnceAndForGood) {
  const absl::Status changed = MarkUnreadableWeights(absl::DataLossError("a.gguf has changed"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(failures_.ForClient(changed),
              absl::UnavailableError("the server can no longer read its model"));
  }
  EXPECT_FALSE(failures_.weights().ok());
  EXPECT_TRUE(failures_.ForClient(MarkUnreadableWeights(absl::OkStatus())).ok());
  EXPECT_FALSE(failures_.weights().ok());
  EXPECT_THAT(
      notes_,
      ElementsAre("every answer fails until the program is started again: a.gguf has changed"));
}

}  // namespace
}  // namespace inlay::serve
