// One stream for the client who asked for it and for those who follow.
#include "serve/service/event_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>

#include "absl/time/time.h"
#include "tests/serve/service/fake_reply.h"

namespace inlay::serve {
namespace {

// The replies themselves fail the test when they start or end twice.
class EventStreamTest : public testing::Test {
 protected:
  const std::shared_ptr<FakeReply> own_ = std::make_shared<FakeReply>();
  const std::shared_ptr<FakeReply> follower_ = std::make_shared<FakeReply>();
  EventStream stream_;
};

TEST_F(EventStreamTest, StartsOnceAndEndsOnce) {
  stream_.Write("lost");
  EXPECT_FALSE(stream_.started());
  for (int i = 0; i < 2; ++i) stream_.Start(own_);
  EXPECT_TRUE(stream_.started());
  stream_.Write("a");
  stream_.Finish();
  EXPECT_TRUE(own_->finished());
  EXPECT_FALSE(stream_.has_readers());
  stream_.Write("b");
  stream_.Fail([] { return std::string("c"); });
  EXPECT_EQ(own_->body(), "a");
}

TEST_F(EventStreamTest, WhoFollowsGetsWhatFollows) {
  stream_.Start(own_);
  stream_.Write("a");
  stream_.Join(follower_, "so far: a ");
  stream_.Write("b");
  stream_.Fail([] { return std::string("!"); });
  EXPECT_EQ(own_->body(), "ab!");
  EXPECT_EQ(follower_->body(), "so far: a b!");
  EXPECT_TRUE(own_->finished() && follower_->finished());
}

TEST_F(EventStreamTest, AFollowerThatIsGoneIsNotWrittenTo) {
  stream_.Join(follower_, "a");
  EXPECT_FALSE(stream_.started());
  follower_->Leave();
  stream_.Write("b");
  EXPECT_FALSE(stream_.has_readers());
  EXPECT_EQ(follower_->body(), "a");
}

TEST_F(EventStreamTest, KnowsHowLongItHasBeenSilent) {
  EXPECT_FALSE(stream_.IsSilentSince(absl::InfinitePast()));
  EXPECT_TRUE(stream_.IsSilentSince(absl::InfiniteFuture()));
}

TEST_F(EventStreamTest, WithoutMemoryForItsErrorItIsCutOff) {
  stream_.Start(own_);
  stream_.Join(follower_, "a");
  stream_.Fail([]() -> std::string { throw std::bad_alloc(); });
  for (const auto& reply : {own_, follower_}) {
    EXPECT_EQ(reply->status(), 200);
    EXPECT_TRUE(reply->finished());
  }
  EXPECT_FALSE(stream_.has_readers());
}

}  // namespace
}  // namespace inlay::serve
