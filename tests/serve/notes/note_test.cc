// What the operator is told.
#include "serve/notes/note.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

namespace inlay::serve {
namespace {

TEST(NoteTest, TellsASentenceOfParts) {
  std::vector<std::string> told;
  const Note note([&](absl::string_view sentence) { told.emplace_back(sentence); });
  note.Tell("the store has ", 3, " sessions", std::string("."));
  EXPECT_THAT(told, testing::ElementsAre("the store has 3 sessions."));
}

TEST(NoteTest, NobodyIsToldWhereNobodyListens) { Note(nullptr).Tell("a", 1); }

TEST(NoteTest, ASentenceWithoutMemoryIsLost) {
  int calls = 0;
  const Note note([&](absl::string_view) {
    ++calls;
    throw std::bad_alloc();
  });
  note.Tell("a");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace inlay::serve
