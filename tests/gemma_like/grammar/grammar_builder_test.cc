#include "gemma_like/grammar/grammar_builder.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>

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

std::string ErrorOf(const std::function<Expr(GrammarBuilder&)>& define) {
  return std::string(BuildGrammar(define).status().message());
}

TEST(GrammarBuilderTest, LeftRecursionIsRefused) {
  GrammarBuilder b;
  const auto list = b.Declare("list"), nothing = b.Declare("nothing"), other = b.Declare("other");
  b.Define(nothing, b.Repeat(b.Text("x"), 0, 1));
  b.Define(other, b.Sequence({b.Call(nothing), b.Call(list), b.Text("y")}));
  b.Define(list, b.Choice({b.Call(other), b.Text("z")}));
  const auto grammar = std::move(b).Build(list);
  EXPECT_EQ(grammar.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(grammar.status().message(),
            "rule 'list' is left-recursive: a text of it may begin with another one");
}

TEST(GrammarBuilderTest, WhatCannotBeBuiltIsRefusedByItsName) {
  EXPECT_EQ(ErrorOf([](GrammarBuilder& b) { return b.Call(b.Declare("missing")); }),
            "rule 'missing' is not defined");
  EXPECT_EQ(ErrorOf([](GrammarBuilder& b) {
              return b.Sequence({b.Text("a"), b.Nothing()});
            }),
            "no text matches rule 'root'");
  EXPECT_EQ(ErrorOf([](GrammarBuilder& b) {
              const auto loop = b.Declare("loop");
              b.Define(loop, b.Sequence({b.Text("a"), b.Call(loop)}));
              return b.Call(loop);
            }),
            "no text matches rule 'root'");
  EXPECT_EQ(ErrorOf([](GrammarBuilder& b) {
              return b.AnyObject({.members = {{"a", b.Declare("x")}}});
            }),
            "rule 'x' is not defined");
}

TEST(GrammarBuilderTest, SizesAreBounded) {
  EXPECT_NE(ErrorOf([](GrammarBuilder& b) {
              Expr expr = b.Text("a");
              for (int i = 0; i < 100; ++i) expr = b.Sequence({expr, expr});
              return expr;
            }).find("more than 1000000"),
            std::string::npos);
  EXPECT_NE(ErrorOf([](GrammarBuilder& b) {
              return b.Repeat(b.Repeat(b.Empty(), SIZE_MAX, std::nullopt), 0, SIZE_MAX);
            }).find("more than 1000000"),
            std::string::npos);
  EXPECT_NE(ErrorOf([](GrammarBuilder& b) {
              Expr expr = b.Text("a");
              for (int i = 0; i < 200; ++i) expr = b.Sequence({expr});
              return expr;
            }).find("201 deep"),
            std::string::npos);
  EXPECT_NE(ErrorOf([](GrammarBuilder& b) {
              GrammarBuilder::Rule rule = b.Declare("first");
              b.Define(rule, b.Text("a"));
              for (size_t i = 0; i < kMostLeftCalls; ++i) {
                const auto next = b.Declare("next");
                b.Define(next, b.Call(std::exchange(rule, next)));
              }
              return b.Call(rule);
            }).find("begins with more than 100 rules"),
            std::string::npos);
}

// What is added beyond the bounds is not kept, long before Build.
TEST(GrammarBuilderTest, StopsKeepingWhatItIsGiven) {
  GrammarBuilder states;
  const auto first = states.Declare("first"), second = states.Declare("second");
  states.Define(first, states.Repeat(states.Text("a"), 200000, 200000));
  EXPECT_TRUE(states.status().ok());
  const Expr last = states.Repeat(states.Text("b"), 200000, 200000);
  states.Define(second, last);
  EXPECT_EQ(states.status().message(),
            "the rules up to 'second' need 1200006 states, more than 1000000");
  EXPECT_LT(states.Text("c"), last + 1);
  EXPECT_EQ(std::move(states).Build(first).status().code(), absl::StatusCode::kResourceExhausted);

  GrammarBuilder bytes(1000000);
  for (int i = 0; i < 9; ++i) bytes.Text(std::string(100000, 'a'));
  EXPECT_TRUE(bytes.status().ok());
  bytes.Text(std::string(100000, 'a'));
  EXPECT_EQ(bytes.status().message(),
            "the expressions of the grammar take more than 1000000 bytes");
  const auto root = bytes.Declare("root");
  bytes.Define(root, bytes.Choice({bytes.Text("b"), bytes.AnyObject({}), bytes.Call(root)}));
  EXPECT_EQ(std::move(bytes).Build(root).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(GrammarBuilderTest, TheByteOfControlTokensIsTheirsAlone) {
  const auto grammar = Compiled([](GrammarBuilder& b) {
    return b.Choice({b.Repeat(b.Byte(ByteSet().set()), 0, std::nullopt), b.ControlToken(0x010203),
                     b.Text("a\xFF")});
  });
  EXPECT_EQ(Read(grammar, "any\x80\xFE"), Reads::kWhole);
  EXPECT_EQ(Read(grammar, "a\xFF"), Reads::kNot);
  EXPECT_EQ(Read(grammar, "\xFF\x01\x02"), Reads::kAsBeginning);
  EXPECT_EQ(Read(grammar, "\xFF\x01\x02\x03"), Reads::kWhole);
  EXPECT_EQ(Read(grammar, "\xFF\x01\x02\x04"), Reads::kNot);
}

}  // namespace
}  // namespace inlay
