#include "gemma_like/generation/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"

namespace inlay {
namespace {

using Texts = std::vector<std::string>;

// What came out of a matcher, and whether a stop text was found.
struct Outcome {
  std::string shown;
  bool stopped = false;

  friend bool operator==(const Outcome&, const Outcome&) = default;
};

void PrintTo(const Outcome& outcome, std::ostream* out) {
  *out << '"' << outcome.shown << '"' << (outcome.stopped ? ", stopped" : "");
}

// Pushes the pieces, and flushes unless a stop text came.
Outcome Run(const Texts& stops, const std::vector<absl::string_view>& pieces) {
  StopMatcher matcher(stops);
  Outcome outcome;
  for (const absl::string_view piece : pieces) outcome.shown += matcher.Push(piece);
  outcome.stopped = matcher.stopped();
  EXPECT_EQ(matcher.found().empty(), !matcher.stopped());
  if (!outcome.stopped) outcome.shown += matcher.Flush();
  return outcome;
}

// The same outcome for the whole text, for every way to cut it in two or three, empty pieces
// included, and for single bytes.
void ExpectForEverySplit(const Texts& stops, absl::string_view text, const Outcome& expected) {
  EXPECT_EQ(Run(stops, {text}), expected) << text;
  for (size_t i = 0; i <= text.size(); ++i) {
    for (size_t j = i; j <= text.size(); ++j) {
      EXPECT_EQ(Run(stops, {text.substr(0, i), text.substr(i, j - i), text.substr(j)}), expected)
          << text << " cut at " << i << " and " << j;
    }
  }
  std::vector<absl::string_view> bytes;
  for (size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
  EXPECT_EQ(Run(stops, bytes), expected) << text;
}

TEST(StopMatcherTest, WithoutStopTextsNothingIsHeldBack) {
  StopMatcher matcher({});
  EXPECT_EQ(matcher.Push("one "), "one ");
  EXPECT_EQ(matcher.Push(""), "");
  EXPECT_EQ(matcher.Push("two"), "two");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcherTest, CutsBeforeTheStopTextWhereverItIsSplit) {
  ExpectForEverySplit({"END"}, "one END two", {"one ", true});
  ExpectForEverySplit({"END"}, "END", {"", true});
  ExpectForEverySplit({"END"}, "one EN", {"one EN", false});
  ExpectForEverySplit({"END"}, "EEND", {"E", true});
  ExpectForEverySplit({"END"}, "ENEND", {"EN", true});
  ExpectForEverySplit({"\n\n"}, "a\nb\n\n\nc", {"a\nb", true});
  ExpectForEverySplit({std::string("\0\0", 2)}, absl::string_view("a\0b\0\0", 5),
                      {std::string("a\0b", 3), true});
}

// After a part that did not go on as one stop text, another may have begun inside of that part.
TEST(StopMatcherTest, FindsAStopTextThatBeginsInsideOfAFalseStart) {
  ExpectForEverySplit({"aab"}, "aaab", {"a", true});
  ExpectForEverySplit({"abac"}, "ababac", {"ab", true});
  ExpectForEverySplit({"abcx", "bcd"}, "abcd", {"a", true});
  ExpectForEverySplit({"abcx", "bcd"}, "abcbx", {"abcbx", false});
}

TEST(StopMatcherTest, OfSeveralStopTextsTheOneThatIsCompleteFirstWins) {
  ExpectForEverySplit({"two", "one"}, "0 one two", {"0 ", true});
  ExpectForEverySplit({"one", "two"}, "0 one two", {"0 ", true});
  ExpectForEverySplit({"bcd", "abc"}, "xabcd", {"x", true});
  ExpectForEverySplit({"bc", "abc"}, "xabc", {"x", true});
  // Where one is the beginning of the other, the text is cut in the same place.
  ExpectForEverySplit({"ab", "abc"}, "xabc", {"x", true});
  ExpectForEverySplit({"abc", "ab"}, "xabd", {"x", true});
  ExpectForEverySplit({"same", "same"}, "the same", {"the ", true});
  // One inside another.
  ExpectForEverySplit({"abcd", "bc"}, "xabcd", {"xa", true});
  ExpectForEverySplit({"bc", "abcd"}, "xabcd", {"xa", true});
}

TEST(StopMatcherTest, SaysWhichStopTextItFound) {
  const auto found = [](const Texts& stops, absl::string_view text) {
    StopMatcher matcher(stops);
    matcher.Push(text);
    return matcher.found();
  };
  EXPECT_EQ(found({"two", "one"}, "0 one two"), "one");
  EXPECT_EQ(found({"ab", "abc"}, "xabc"), "ab");
  EXPECT_EQ(found({"bc", "abc"}, "xabc"), "abc");
  EXPECT_EQ(found({"END"}, "EN"), "");
}

TEST(StopMatcherTest, HoldsBackTheLongestBeginningOfAStopTextAndNoMore) {
  StopMatcher matcher({"<end>", "dx"});
  EXPECT_EQ(matcher.Push("a<b"), "a<b");
  EXPECT_EQ(matcher.Push("c<"), "c");
  EXPECT_EQ(matcher.Push("e"), "");
  // "<end" is held for the first stop text; its end alone would do for the second.
  EXPECT_EQ(matcher.Push("nd"), "");
  EXPECT_EQ(matcher.Push("<"), "<end");
  EXPECT_EQ(matcher.Push("!d"), "<!");
  EXPECT_EQ(matcher.Flush(), "d");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcherTest, FlushGivesWhatIsHeldBackOnce) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_EQ(matcher.Push("one EN"), "one ");
  EXPECT_EQ(matcher.Flush(), "EN");
  EXPECT_EQ(matcher.Flush(), "");
  // What was flushed is no longer the beginning of a stop text.
  EXPECT_EQ(matcher.Push("D"), "D");
  EXPECT_FALSE(matcher.stopped());
}

TEST(StopMatcherTest, AfterAStopTextNothingComesOut) {
  StopMatcher matcher({"END"});
  EXPECT_EQ(matcher.Push("one END two"), "one ");
  EXPECT_TRUE(matcher.stopped());
  EXPECT_EQ(matcher.Push("three"), "");
  EXPECT_EQ(matcher.Push("END"), "");
  EXPECT_EQ(matcher.Flush(), "");
  EXPECT_TRUE(matcher.stopped());
}

// "\xC3\xA9" is e with an acute accent, and "\xF0\x9F\xA6\x99" a llama.
TEST(StopMatcherTest, StopTextsMayBeAnyCharacters) {
  ExpectForEverySplit({"\xC3\xA9"}, "caf\xC3\xA9!", {"caf", true});
  ExpectForEverySplit({"\xF0\x9F\xA6\x99."}, "a\xF0\x9F\xA6\x99\xF0\x9F\xA6\x99.b",
                      {"a\xF0\x9F\xA6\x99", true});
  // Another character with the same first bytes does not stop.
  ExpectForEverySplit({"\xF0\x9F\xA6\x99"}, "\xF0\x9F\xA6\x98", {"\xF0\x9F\xA6\x98", false});
  // Whole characters are given out as they come.
  StopMatcher matcher({"\xC3\xA9!"});
  EXPECT_EQ(matcher.Push("\xC3\xA8"), "\xC3\xA8");
  EXPECT_EQ(matcher.Push("\xC3\xA9"), "");
  EXPECT_EQ(matcher.Push("\xC3\xA9"), "\xC3\xA9");
}

TEST(StopMatcherTest, IgnoresStopTextsThatAreEmptyOrBeginInsideOfACharacter) {
  ExpectForEverySplit({""}, "one", {"one", false});
  ExpectForEverySplit({"\xA9"}, "caf\xC3\xA9", {"caf\xC3\xA9", false});
  ExpectForEverySplit({"\x80z", "\xBFz"}, "\xC2\x80z\xC2\xBFz", {"\xC2\x80z\xC2\xBFz", false});
  // The others still count.
  ExpectForEverySplit({"", "\xA9!", "!"}, "caf\xC3\xA9!", {"caf\xC3\xA9", true});
}

TEST(StopMatcherTest, RandomTextsComeOutUpToTheFirstStopTextAndAsSoonAsTheyCan) {
  std::mt19937 random(3);
  const auto text_of = [&](size_t size) {
    std::string text(size, 'a');
    for (char& c : text) c = static_cast<char>('a' + random() % 2);
    return text;
  };
  int stopped = 0;
  int ran_through = 0;
  for (int round = 0; round < 20'000; ++round) {
    Texts stops(1 + random() % 3);
    for (std::string& stop : stops) stop = text_of(1 + random() % 6);
    const std::string text = text_of(random() % 24);
    // The text up to the stop text that is complete first, the longest of those that are.
    size_t end = std::string::npos;
    for (size_t size = 0; size <= text.size() && end == std::string::npos; ++size) {
      for (const std::string& stop : stops) {
        if (absl::EndsWith(absl::string_view(text).substr(0, size), stop))
          end = std::min(end, size - stop.size());
      }
    }

    StopMatcher matcher(stops);
    std::string shown;
    for (size_t at = 0; at < text.size() && !matcher.stopped();) {
      const size_t size = std::min(random() % 5, text.size() - at);
      shown += matcher.Push(absl::string_view(text).substr(at, size));
      at += size;
      if (matcher.stopped()) break;
      // All but the longest end that some stop text begins with, and goes on after.
      size_t held = 0;
      for (const std::string& stop : stops) {
        for (size_t n = 1; n < stop.size() && n <= at; ++n) {
          if (absl::EndsWith(absl::string_view(text).substr(0, at), stop.substr(0, n)))
            held = std::max(held, n);
        }
      }
      ASSERT_EQ(shown, text.substr(0, at - held)) << text;
    }
    ASSERT_EQ(matcher.stopped(), end != std::string::npos) << text;
    shown += matcher.Flush();
    ASSERT_EQ(shown, text.substr(0, end)) << text;
    ++(matcher.stopped() ? stopped : ran_through);
  }
  EXPECT_GT(stopped, 1000);
  EXPECT_GT(ran_through, 1000);
}

}  // namespace
}  // namespace inlay
