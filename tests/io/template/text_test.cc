#include "io/template/text.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace inlay::jinja {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<OriginRun> Runs(const Text& text) { return {text.runs().begin(), text.runs().end()}; }

// "tmt": a byte of the template, one of a message, one of the template.
Text Make(const std::string& origins) {
  Text text;
  for (const char c : origins)
    text.Append(std::string(1, c), c == 'm' ? Origin::kMessage : Origin::kTemplate);
  return text;
}

TEST(TextTest, AdjacentRunsDiffer) {
  Text text("ab", Origin::kMessage);
  text.Append("", Origin::kTemplate);
  text.Append("c", Origin::kMessage);
  EXPECT_THAT(Runs(text), ElementsAre(OriginRun{3, Origin::kMessage}));
  text.Append("de", Origin::kTemplate);
  text.Append(Text("f", Origin::kTemplate));
  EXPECT_EQ(text.bytes(), "abcdef");
  EXPECT_THAT(Runs(text),
              ElementsAre(OriginRun{3, Origin::kMessage}, OriginRun{6, Origin::kTemplate}));
}

TEST(TextTest, EmptyTextsHaveNoRun) {
  EXPECT_THAT(Runs(Text()), IsEmpty());
  EXPECT_THAT(Runs(Text("", Origin::kMessage)), IsEmpty());
  EXPECT_FALSE(Text("", Origin::kMessage).HasMessage());
  // What an empty text was meant to be does not matter for what follows.
  Text text("", Origin::kMessage);
  text.Append("a", Origin::kTemplate);
  EXPECT_THAT(Runs(text), ElementsAre(OriginRun{1, Origin::kTemplate}));
}

TEST(TextTest, PartsKeepOrigins) {
  const Text text = Make("ttmmmtm");
  EXPECT_THAT(Runs(text.Part(1, 4)),
              ElementsAre(OriginRun{1, Origin::kTemplate}, OriginRun{3, Origin::kMessage}));
  EXPECT_THAT(Runs(text.Part(2, 5)), ElementsAre(OriginRun{3, Origin::kMessage}));
  EXPECT_THAT(Runs(text.Part(3, 3)), IsEmpty());
  for (size_t begin = 0; begin <= text.size(); ++begin) {
    for (size_t end = begin; end <= text.size(); ++end) {
      const Text part = text.Part(begin, end);
      ASSERT_EQ(part.bytes(), text.bytes().substr(begin, end - begin));
      OriginReader origins(part);
      for (size_t i = 0; i < part.size(); ++i) {
        ASSERT_EQ(part.OriginAt(i), text.OriginAt(begin + i));
        ASSERT_EQ(origins.At(i), text.OriginAt(begin + i));
      }
    }
  }
}

TEST(TextTest, SaysWhetherThereIsAMessage) {
  EXPECT_TRUE(Make("tmt").HasMessage());
  EXPECT_FALSE(Make("ttt").HasMessage());
  EXPECT_TRUE(Make("m").HasMessage());
}

}  // namespace
}  // namespace inlay::jinja
