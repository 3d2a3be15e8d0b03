#include "gemma_like/grammar/grammar_guide.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/gemma_like/chat/chat_vocabulary.h"
#include "tests/must.h"

namespace inlay {
namespace {

class GrammarGuideTest : public ::testing::Test {
 protected:
  // Of answers that match `regex` after thoughts that end with '.'.
  GrammarGuide AfterThoughts(const std::string& regex) {
    return GrammarGuide(
        *tokenizer_,
        Must(grammars_.Get({.kind = AnswerShape::Kind::kRegex, .source = regex, .after = "."})));
  }

  // The text of all tokens that must come next, which are accepted.
  std::string TakeForced(GrammarGuide& guide) {
    std::string text;
    for (const int32_t token : Must(guide.Forced())) {
      EXPECT_TRUE(Must(guide.Accept(token))) << text;
      absl::StrAppend(&text, tokenizer_->Piece(token));
    }
    return text;
  }

  // Whether all tokens of the text are accepted.
  bool Accept(GrammarGuide& guide, absl::string_view text) {
    for (const int32_t token : Must(tokenizer_->Encode(text, {.add_bos = false})))
      if (!Must(guide.Accept(token))) return false;
    return true;
  }

  static std::unique_ptr<Tokenizer> MakeTokenizer() {
    TestVocabulary vocabulary = SpmBase();
    vocabulary.flags = {{"add_bos_token", true}, {"add_space_prefix", false}};
    return MustLoad(vocabulary);
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MakeTokenizer();
  AnswerGrammars grammars_{*tokenizer_};
};

// It would be taken for what models write between thoughts and answer, and demanded again.
TEST_F(GrammarGuideTest, WhiteSpaceThatTheShapeBeginsWithComesOnce) {
  GrammarGuide guide = AfterThoughts("\\nAct:(1|2)");
  EXPECT_TRUE(Accept(guide, "So."));
  EXPECT_EQ(TakeForced(guide), "\nAct") << "but for the last one, which might go on";
  EXPECT_TRUE(Accept(guide, ":2"));
  EXPECT_TRUE(Must(guide.IsComplete()));
}

TEST_F(GrammarGuideTest, OtherWhiteSpaceMayComeBeforeIt) {
  GrammarGuide guide = AfterThoughts("\\nAct:(1|2)");
  EXPECT_TRUE(Accept(guide, "So."));
  EXPECT_TRUE(Accept(guide, "\t"));
  EXPECT_FALSE(Accept(guide, "\t")) << "once";
  EXPECT_TRUE(Accept(guide, "\nAct:1"));
  EXPECT_TRUE(Must(guide.IsComplete()));
  GrammarGuide plain = AfterThoughts("[12]");
  EXPECT_TRUE(Accept(plain, ".\n2"));
  EXPECT_TRUE(Must(plain.IsComplete()));
}

}  // namespace
}  // namespace inlay
