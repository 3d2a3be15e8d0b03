// Where chats are kept: which are there, in what order, and which go.
#include "tools/kept_chats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "io/store/state_store_memory.h"
#include "tests/io/store/forwarding_store.h"
#include "tests/must.h"
#include "tests/tools/session_fixture.h"

namespace inlay {
namespace {

class KeptChatsTest : public Session {};

TEST_F(KeptChatsTest, IsAmongTheNewestThatAreKept) {
  const auto store = std::make_shared<MemoryStore>();
  ChatSession session = Make();
  KeptChats first(store, *model_.engine);
  ASSERT_TRUE(first.Keep(session).ok());
  EXPECT_TRUE(Must(store->List("")).empty()) << "nothing has been said";
  Say(session, "ROMEO:");
  ASSERT_TRUE(first.Keep(session).ok());
  ASSERT_TRUE(first.Keep(session).ok());
  const std::vector<std::string> keys = Must(store->List(""));
  ASSERT_EQ(keys.size(), 1u);
  const std::string prefix = keys[0].substr(0, std::string("chat-0123456789abcdef-").size());
  for (int i = 1000; i < 1120; ++i) {  // of earlier years, and one of another model
    for (const std::string& key : {absl::StrCat(prefix, i), std::string("chat-another")})
      ASSERT_TRUE((*store->Put(key))->Commit().ok());
  }
  KeptChats second(store, *model_.engine);
  Say(session, "JULIET:");
  ASSERT_TRUE(second.Keep(session).ok());
  const std::vector<std::string> left = Must(store->List(prefix));
  ASSERT_EQ(left.size(), KeptChats::kMost);
  EXPECT_EQ(left[KeptChats::kMost - 2], keys[0]);
  EXPECT_EQ(left[0], prefix + "1022");
  EXPECT_TRUE(store->Get("chat-another").ok());
  ChatSession other = Make();
  ASSERT_TRUE(second.LoadNewest(other, {}).ok());
  EXPECT_EQ(other.turns().size(), 2u);
}

// The newest chat is the one that somebody was at last, not the one that began last.
TEST_F(KeptChatsTest, IsNewestWhereItWasKeptLast) {
  const auto store = std::make_shared<MemoryStore>();
  ChatSession early = Make(), late = Make(), other = Make();
  KeptChats keeps_early(store, *model_.engine), keeps_late(store, *model_.engine);
  Say(early, "ROMEO:");
  ASSERT_TRUE(keeps_early.Keep(early).ok());
  Say(late, "JULIET:");
  ASSERT_TRUE(keeps_late.Keep(late).ok());
  ASSERT_TRUE(KeptChats(store, *model_.engine).LoadNewest(other, {}).ok());
  EXPECT_EQ(other.turns().front().user, "JULIET:");
  Say(early, "NURSE:");
  ASSERT_TRUE(keeps_early.Keep(early).ok());
  EXPECT_EQ(Must(store->List("")).size(), 2u);
  // Whoever goes on with it has it alone: there is no second one with what was before.
  KeptChats goes_on(store, *model_.engine);
  ASSERT_TRUE(goes_on.LoadNewest(other, {}).ok());
  ASSERT_EQ(other.turns().size(), 2u);
  EXPECT_EQ(other.turns().front().user, "ROMEO:");
  Say(other, "A:");
  ASSERT_TRUE(goes_on.Keep(other).ok());
  EXPECT_EQ(Must(store->List("")).size(), 2u);
  // Without turns it is none.
  ASSERT_TRUE(other.Rewind(3).ok());
  ASSERT_TRUE(goes_on.Keep(other).ok());
  ASSERT_EQ(Must(store->List("")).size(), 1u);
  ASSERT_TRUE(goes_on.LoadNewest(other, {}).ok());
  EXPECT_EQ(other.turns().front().user, "JULIET:");
}

// A clock that was ahead has left names of years to come.
TEST_F(KeptChatsTest, IsNewestWhereAClockWasAhead) {
  const auto store = std::make_shared<MemoryStore>();
  ChatSession session = Make(), other = Make();
  KeptChats chats(store, *model_.engine);
  Say(session, "ROMEO:");
  ASSERT_TRUE(chats.Keep(session).ok());
  const std::string prefix = chats.key().substr(0, std::string("chat-0123456789abcdef-").size());
  const auto key_ahead = [&](size_t i) {
    return absl::StrCat(prefix, "30", absl::Dec(i, absl::kZeroPad2), "0102T030405.678901-1");
  };
  for (size_t i = 0; i < KeptChats::kMost; ++i)
    ASSERT_TRUE(session.Save(**store->Put(key_ahead(i)), SavedPart::kTokens).ok());
  // A chat of before that goes on, and one that begins.
  for (const bool begins : {false, true}) {
    if (begins) chats.BeginAnother();
    Say(session, "JULIET:");
    ASSERT_TRUE(chats.Keep(session).ok());
    EXPECT_EQ(Must(chats.List()).front(), chats.key());
    ASSERT_TRUE(KeptChats(store, *model_.engine).LoadNewest(other, {}).ok());
    EXPECT_EQ(other.turns().size(), session.turns().size());
  }
  EXPECT_EQ(Must(chats.List()).size(), KeptChats::kMost);
}

// A name that sorts after all times.
TEST_F(KeptChatsTest, WhatWasJustKeptStaysWhateverIsInTheStore) {
  const auto store = std::make_shared<MemoryStore>();
  ChatSession session = Make();
  Say(session, "ROMEO:");
  KeptChats chats(store, *model_.engine);
  ASSERT_TRUE(chats.Keep(session).ok());
  const std::string prefix = chats.key().substr(0, std::string("chat-0123456789abcdef-").size());
  for (size_t i = 0; i < KeptChats::kMost; ++i)
    ASSERT_TRUE((*store->Put(absl::StrCat(prefix, "never-", i)))->Commit().ok());
  chats.BeginAnother();
  ASSERT_TRUE(chats.Keep(session).ok());
  EXPECT_TRUE(store->Get(chats.key()).ok());
}

TEST_F(KeptChatsTest, KeptChatsAreListedAndReached) {
  const auto store = std::make_shared<MemoryStore>();
  ChatSession first = Make(), second = Make(), other = Make();
  Say(first, "ROMEO:");
  ASSERT_TRUE(KeptChats(store, *model_.engine).Keep(first).ok());
  Say(second, "JULIET:");
  Say(second, "NURSE:");
  ASSERT_TRUE(KeptChats(store, *model_.engine).Keep(second).ok());
  KeptChats chats(store, *model_.engine);
  const std::vector<std::string> keys = Must(chats.List());
  ASSERT_EQ(keys.size(), 2u);
  const KeptChats::Summary newest = Must(chats.Summarize(keys[0]));
  EXPECT_EQ(newest.first_user, "JULIET:");
  EXPECT_EQ(newest.turns, 2u);
  EXPECT_THAT(newest.kept, testing::MatchesRegex("[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}"));
  ASSERT_TRUE(chats.Load(keys[1], other, {}).ok());
  EXPECT_EQ(other.turns().front().user, "ROMEO:");
  Say(other, "PARIS:");
  ASSERT_TRUE(chats.Keep(other).ok());
  EXPECT_EQ(Must(chats.List()).size(), 2u) << "it stays one chat";
}

// A store in which another process deletes what is listed.
class SharedStore final : public ForwardingStore {
 public:
  SharedStore() : ForwardingStore(std::make_shared<MemoryStore>()) {}
  absl::StatusOr<std::vector<std::string>> List(absl::string_view prefix) override {
    auto keys = ForwardingStore::List(prefix);
    for (size_t i = 0; keys.ok() && i + KeptChats::kMost < keys->size(); i += 2)
      EXPECT_TRUE(Delete((*keys)[i]).ok());
    return keys;
  }
};

TEST_F(KeptChatsTest, IsKeptWhereAnotherProcessDeletesChats) {
  const auto store = std::make_shared<SharedStore>();
  ChatSession session = Make();
  Say(session, "ROMEO:");
  KeptChats first(store, *model_.engine);
  ASSERT_TRUE(first.Keep(session).ok());
  const std::string key = Must(store->List("")).at(0);
  const std::string prefix = key.substr(0, std::string("chat-0123456789abcdef-").size());
  for (int i = 1000; i < 1103; ++i)
    ASSERT_TRUE((*store->Put(absl::StrCat(prefix, i)))->Commit().ok());
  KeptChats second(store, *model_.engine);
  const absl::Status status = second.Keep(session);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(Must(store->List(prefix)).size(), KeptChats::kMost);
}

}  // namespace
}  // namespace inlay
