#include "gemma_like/grammar/grammar_builder.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

using Expr = GrammarBuilder::Expr;

TEST(GrammarBuilderTest, TextsSequencesAndChoices) {
  const auto grammar = Compiled([](GrammarBuilder& b) {
    return b.Sequence(
        {b.Text("ab"), b.Choice({b.Text("c"), b.Text("cd"), b.Empty()}), b.Text("!")});
  });
  EXPECT_EQ(Read(grammar, ""), Reads::kAsBeginning);
  EXPECT_EQ(Read(grammar, "abc"), Reads::kAsBeginning);
  EXPECT_EQ(Read(grammar, "abcd!"), Reads::kWhole);
  EXPECT_EQ(Read(grammar, "ab!"), Reads::kWhole);
  EXPECT_EQ(Read(grammar, "abd"), Reads::kNot);
  EXPECT_EQ(Read(grammar, "ab!!"), Reads::kNot);
}

TEST(GrammarBuilderTest, RecursionNestsAsDeepAsTheText) {
  GrammarBuilder b;
  const auto root = b.Declare("root");
  b.Define(root, b.Choice({b.Sequence({b.Text("("), b.Call(root), b.Text(")"), b.Call(root)}),
                           b.Empty()}));
  const auto grammar = Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
  const std::string deep = std::string(20000, '(') + std::string(20000, ')');
  EXPECT_EQ(Read(grammar, deep), Reads::kWhole);
  EXPECT_EQ(Read(grammar, deep + "()(())"), Reads::kWhole);
  EXPECT_EQ(Read(grammar, deep + ")"), Reads::kNot);
}

TEST(GrammarBuilderTest, ObjectsInAnyOrderHaveTheirRequiredNames) {
  GrammarBuilder b;
  const auto value = b.Declare("value");
  b.Define(value, b.Choice({b.Text("1"), b.Text("12")}));
  const auto root = b.Declare("root");
  GrammarBuilder::Object object;
  object.members = {{"a", value, true}, {"ab", value, false}, {"c", value, true}};
  b.Define(root, b.AnyObject(object));
  const auto grammar = Must(CompiledGrammar::Create(Must(std::move(b).Build(root))));
  for (const char* text :
       {R"({"a":1,"c":1})", R"({"c": 12, "ab": 1, "a": 1})", "{\n\"c\":1,\"a\":12}"}) {
    EXPECT_EQ(Read(grammar, text), Reads::kWhole) << text;
  }
  for (const char* text :
       {"{}", R"({"a":1})", R"({"a":1,"a")", R"({"a" :)", R"({"b)", R"({"a":1 ,)",
        R"({"a":1,"c":1,})", R"({"a":1,"ab":1,"c":1,)", R"({"ac)"}) {
    EXPECT_EQ(Read(grammar, text), Reads::kNot) << text;
  }
  GrammarMatcher matcher(grammar);
  EXPECT_EQ(Must(matcher.ForcedBytes(100)), "{");
  EXPECT_TRUE(Must(matcher.AcceptBytes(R"({"c":1,"ab":12)")));
  EXPECT_EQ(Must(matcher.ForcedBytes(100)), ",");
  EXPECT_TRUE(Must(matcher.AcceptBytes(R"(,")")));
  EXPECT_EQ(Must(matcher.ForcedBytes(100)), R"(a":)");
}

}  // namespace
}  // namespace inlay
