#include "gemma_like/grammar/grammar_matcher.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/gemma_like/grammar/grammar_text.h"

namespace inlay {
namespace {

constexpr int32_t kCall = 0, kEnd = 1, kA = 2, kB = 3, kAB = 4;

std::shared_ptr<const TokenTrie> Vocabulary() {
  return Must(TokenTrie::Create({"<call>", "<end>", "a", "b", "ab"}, {kCall, kEnd}));
}

std::shared_ptr<CompiledGrammar> WithTokens(
    const std::function<GrammarBuilder::Expr(GrammarBuilder&)>& define) {
  return Must(CompiledGrammar::Create(Must(BuildGrammar(define)),
                                      {.tokens = Vocabulary(), .ends = {kEnd}}));
}

uint64_t Bits(std::initializer_list<int32_t> tokens) {
  uint64_t bits = 0;
  for (const int32_t token : tokens) bits |= uint64_t{1} << token;
  return bits;
}

TEST(GrammarMatcherTest, FollowsTokensToAnEnd) {
  const auto grammar = WithTokens([](GrammarBuilder& b) {
    return b.Sequence({b.Text("a"), b.Repeat(b.Text("b"), 0, 2), b.ControlToken(kCall)});
  });
  GrammarMatcher matcher(grammar);
  EXPECT_EQ(Must(matcher.Allowed())[0], Bits({kA, kAB}));
  EXPECT_FALSE(Must(matcher.Accept(kB)));
  EXPECT_FALSE(Must(matcher.Accept(kEnd)));
  EXPECT_FALSE(Must(matcher.Accept(99)));
  EXPECT_FALSE(Must(matcher.Accept(-1)));
  EXPECT_TRUE(Must(matcher.Accept(kAB)));
  EXPECT_EQ(Must(matcher.Allowed())[0], Bits({kB, kCall}));
  EXPECT_TRUE(Must(matcher.Accept(kCall)));
  EXPECT_TRUE(Must(matcher.CanEnd()));
  EXPECT_TRUE(Must(matcher.MustEnd()));
  EXPECT_EQ(Must(matcher.Allowed())[0], Bits({kEnd}));
  EXPECT_TRUE(Must(matcher.Accept(kEnd)));
  EXPECT_TRUE(matcher.ended());
  EXPECT_EQ(Must(matcher.Allowed())[0], 0u);
  EXPECT_FALSE(Must(matcher.Accept(kEnd)));
  EXPECT_FALSE(Must(matcher.Accept(kA)));
}

TEST(GrammarMatcherTest, CopiesGoTheirOwnWays) {
  const auto grammar = WithTokens([](GrammarBuilder& b) {
    return b.Choice({b.Text("aab"), b.Text("abba")});
  });
  GrammarMatcher one(grammar);
  EXPECT_TRUE(Must(one.Accept(kA)));
  GrammarMatcher other = one;
  EXPECT_TRUE(Must(one.Accept(kAB)));
  EXPECT_TRUE(Must(other.Accept(kB)));
  EXPECT_TRUE(Must(one.MustEnd()));
  EXPECT_EQ(Must(other.ForcedBytes(9)), "ba");
  EXPECT_EQ(Must(other.ForcedBytes(1)), "b");
  EXPECT_FALSE(Must(other.CanEnd()));
}

TEST(GrammarMatcherTest, ForcedBytesEndWhereThereIsAChoice) {
  const auto grammar = WithTokens([](GrammarBuilder& b) {
    return b.Sequence({b.Text("{\""), b.Choice({b.Text("name"), b.Text("nada")}), b.Text("\""),
                       b.Repeat(b.Text("!"), 0, 1)});
  });
  GrammarMatcher matcher(grammar);
  EXPECT_EQ(Must(matcher.ForcedBytes(100)), "{\"na");
  EXPECT_TRUE(Must(matcher.AcceptBytes("{\"nad")));
  EXPECT_EQ(Must(matcher.ForcedBytes(100)), "a\"");  // the text may end before "!"
  const auto control = WithTokens([](GrammarBuilder& b) {
    return b.Sequence({b.Text("a"), b.ControlToken(kCall)});
  });
  EXPECT_EQ(Must(GrammarMatcher(control).ForcedBytes(100)), "a");
}

// S = a S b | a S c | ... needs a group for each way to close what is open.
TEST(GrammarMatcherTest, TooManyWaysAreAnErrorAndChangeNothing) {
  GrammarBuilder b;
  const auto root = b.Declare("root"), other = b.Declare("other");
  b.Define(root, b.Choice({b.Sequence({b.Text("a"), b.Call(root), b.Text("b")}),
                           b.Sequence({b.Text("a"), b.Call(other), b.Text("a")}), b.Text("a")}));
  b.Define(other, b.Choice({b.Sequence({b.Text("a"), b.Call(root), b.Text("a")}),
                            b.Sequence({b.Text("a"), b.Call(other), b.Text("b")}), b.Text("b")}));
  const auto grammar = Must(CompiledGrammar::Create(Must(std::move(b).Build(root)),
                                                    {.tokens = Vocabulary(), .ends = {kEnd}}));
  GrammarMatcher matcher(grammar);
  const auto result = matcher.AcceptBytes(std::string(100, 'a'));
  EXPECT_EQ(result.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(result.status().message().find("too ambiguous"), std::string::npos);
  EXPECT_EQ(Must(matcher.Allowed())[0], Bits({kA, kAB}));
  size_t accepted = 0;
  while (matcher.Accept(kA).ok()) ++accepted;
  EXPECT_GT(accepted, 5u);
  EXPECT_TRUE(Must(matcher.Accept(kB)));
}

// Each of these rules begins with the same rules, one in the other. What they find is the same too,
// but a step must look at all of it.
TEST(GrammarMatcherTest, StepsIntoManyDeepCallsAreAnError) {
  const auto matcher = [](size_t rules) {
    GrammarBuilder b;
    auto last = b.Declare("deepest");
    b.Define(last, b.Text("a"));
    for (int i = 0; i < 95; ++i) {
      const auto next = b.Declare("deep");
      b.Define(next, b.Choice({b.Sequence({b.Call(last), b.Text("b")}), b.Text("aa")}));
      last = next;
    }
    std::vector<GrammarBuilder::Expr> options;
    for (size_t i = 0; i < rules; ++i) {
      const auto rule = b.Declare("wide");
      b.Define(rule, b.Call(last));
      options.push_back(b.Call(rule));
    }
    const auto root = b.Declare("root");
    b.Define(root, b.Choice(std::move(options)));
    return GrammarMatcher(Must(CompiledGrammar::Create(Must(std::move(b).Build(root)))));
  };
  EXPECT_TRUE(Must(matcher(100).AcceptBytes("aab")));
  EXPECT_EQ(matcher(400).AcceptBytes("a").status().code(), absl::StatusCode::kResourceExhausted);
}

// `options` of one frame after "aab".
TEST(GrammarMatcherTest, TooManyStatesAreAnErrorAndChangeNothing) {
  const auto matcher = [](size_t options) {
    return GrammarMatcher(WithTokens([&](GrammarBuilder& b) {
      const std::vector<GrammarBuilder::Expr> texts(options, b.Text("bb"));
      return b.Sequence(
          {b.Text("a"), b.Choice({b.Text("b"), b.Sequence({b.Text("a"), b.Choice(texts)})})});
    }));
  };
  GrammarMatcher most = matcher(Automaton::kMostStates), more = matcher(Automaton::kMostStates + 1);
  EXPECT_TRUE(Must(most.AcceptBytes("aabb")));
  EXPECT_TRUE(Must(most.MustEnd()));
  EXPECT_TRUE(Must(more.Accept(kA)));
  const absl::Status status = more.Accept(kAB).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("more than 100000 states"), std::string::npos) << status;
  EXPECT_EQ(more.Allowed().status(), status);
  EXPECT_TRUE(Must(more.Accept(kB)));
  EXPECT_TRUE(Must(more.MustEnd()));
}

TEST(GrammarMatcherTest, ThreadsShareAGrammarWithoutRoomForItsStates) {
  GrammarBuilder b;
  const auto root = b.Declare("root");
  b.Define(root, b.Choice({b.Sequence({b.Text("a"), b.Call(root), b.Text("b")}), b.Empty()}));
  const auto grammar = Must(CompiledGrammar::Create(
      Must(std::move(b).Build(root)), {.tokens = Vocabulary(), .ends = {kEnd}, .cache_bytes = 0}));
  std::vector<std::thread> threads;
  for (int depth : {20, 30}) {
    threads.emplace_back([grammar, depth] {
      GrammarMatcher matcher(grammar);
      for (int i = 0; i < depth; ++i) {
        EXPECT_EQ(Must(matcher.Allowed())[0], i == 0 ? Bits({kA, kAB, kEnd}) : Bits({kA, kB, kAB}));
        EXPECT_TRUE(Must(matcher.Accept(kA)));
      }
      for (int i = 0; i < depth; ++i) EXPECT_TRUE(Must(matcher.Accept(kB)));
      EXPECT_EQ(Must(matcher.Allowed())[0], Bits({kEnd}));
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace inlay
