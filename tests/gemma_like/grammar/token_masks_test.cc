#include "gemma_like/grammar/token_masks.h"

#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/gemma_like/grammar/grammar_text.h"
#include "tests/gemma_like/grammar/random_grammar.h"

namespace inlay {
namespace {

constexpr int32_t kEndToken = 3;

// Tokens 0 to 2 are control tokens, kEndToken ends an answer; the others are put together from
// pieces.
std::shared_ptr<const TokenTrie> RandomVocabulary(const UpTo& up_to) {
  static const char* const kPieces[] = {"a",        "b",
                                        "1",        "\"",
                                        "\\",       "{",
                                        "}",        ":",
                                        ",",        " ",
                                        "\n",       "u",
                                        "00",       "\xC3",
                                        "\xA9",     "\xC3\xA9",
                                        "\xFF",     "ab",
                                        "c",        "\xF0\x90",
                                        "\x80\x80", "aaaaaaaaaaaaaaaaa"};
  std::vector<std::string> pieces = {"<x>", "<y>", "<z>", "<end>", ""};
  for (const char* piece : kPieces) pieces.push_back(piece);
  for (int i = 0; i < 60; ++i) {
    std::string piece;
    for (size_t n = 1 + up_to(4); n > 0; --n) piece += kPieces[up_to(std::size(kPieces) - 1)];
    pieces.push_back(piece);
  }
  return Must(TokenTrie::Create(pieces, {0, 1, 2}));
}

bool Has(absl::Span<const uint64_t> bits, int32_t token) {
  return (bits[token / 64] >> token % 64 & 1) != 0;
}

// Holds the mask of `matcher` against each token, and returns those that are allowed; none where
// the grammar is too ambiguous.
std::vector<int32_t> CheckAllowed(const TokenTrie& trie, GrammarMatcher& matcher) {
  const auto mask = matcher.Allowed();
  if (!mask.ok()) return {};
  EXPECT_EQ(mask->size(), trie.words());
  const std::vector<uint64_t> allowed(mask->begin(), mask->end());
  std::vector<int32_t> tokens;
  for (int32_t token = 0; token < static_cast<int32_t>(64 * trie.words()); ++token) {
    GrammarMatcher copy = matcher;
    const absl::string_view bytes = trie.Bytes(token);
    const auto accepted = token == kEndToken ? copy.CanEnd() : copy.AcceptBytes(bytes);
    if (!accepted.ok()) continue;
    const bool expected = *accepted && (token == kEndToken || !bytes.empty());
    EXPECT_EQ(Has(allowed, token), expected) << token << ": " << bytes;
    if (expected) tokens.push_back(token);
  }
  return tokens;
}

TEST(TokenMasksTest, AllowWhatIsAcceptedByteByByte) {
  size_t grammars = 0, steps = 0;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const UpTo up_to = [&](size_t most) { return static_cast<size_t>(random() % (most + 1)); };
    const auto built = RandomGrammar::Make(up_to, /*objects=*/true).Build();
    if (!built.ok()) continue;
    ++grammars;
    const auto trie = RandomVocabulary(up_to);
    const auto create = [&](size_t bytes) {
      return GrammarMatcher(Must(CompiledGrammar::Create(
          *built, {.tokens = trie, .ends = {kEndToken}, .cache_bytes = bytes})));
    };
    GrammarMatcher matcher = create(size_t{64} << 20), forgetful = create(0);
    for (int i = 0; i < 12; ++i, ++steps) {
      const std::vector<int32_t> allowed = CheckAllowed(*trie, matcher);
      const auto mask = matcher.Allowed(), same = forgetful.Allowed();
      ASSERT_EQ(mask.ok(), same.ok());
      ASSERT_TRUE(!mask.ok() || *mask == *same);
      if (HasFailure() || allowed.empty()) break;
      int32_t token = allowed[up_to(allowed.size() - 1)];
      if (token == kEndToken) token = allowed[up_to(allowed.size() - 1)];
      ASSERT_TRUE(Must(matcher.Accept(token)));
      ASSERT_TRUE(Must(forgetful.Accept(token)));
      if (token == kEndToken) break;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(grammars, 1000u);
  EXPECT_GT(steps, 5000u);
}

// Frames that treat all plain characters alike and may end between them, before more of these or
// before others.
TEST(TokenMasksTest, FramesMayEndBetweenPlainCharacters) {
  size_t steps = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const UpTo up_to = [&](size_t most) { return static_cast<size_t>(random() % (most + 1)); };
    GrammarBuilder b;
    const auto text = b.Declare("text"), root = b.Declare("root");
    std::optional<size_t> most;
    if (seed % 2 == 0) most = up_to(20);
    const auto character = b.Declare("character");
    b.Define(character, b.CodePoint({{0x20, 0x10FFFF}}));
    const size_t least = up_to(most.value_or(2));
    b.Define(text, seed % 4 < 2 ? b.Repeat(b.Call(character), least, most)
                                : b.Counted(character, least, most));
    b.Define(root, b.Sequence({b.Call(text), b.Text(seed % 3 == 0 ? "a" : "\n"), b.Call(text),
                               b.Text("\n\"")}));
    const auto trie = RandomVocabulary(up_to);
    GrammarMatcher matcher(Must(CompiledGrammar::Create(Must(std::move(b).Build(root)),
                                                        {.tokens = trie, .ends = {kEndToken}})));
    for (int i = 0; i < 8; ++i, ++steps) {
      const std::vector<int32_t> allowed = CheckAllowed(*trie, matcher);
      if (HasFailure()) return;
      if (allowed.empty()) break;
      if (!Must(matcher.Accept(allowed[up_to(allowed.size() - 1)]))) break;
      if (matcher.ended()) break;
    }
  }
  EXPECT_GT(steps, 600u);
}

// As long as more characters are left than any token has, their number does not matter.
TEST(TokenMasksTest, EqualMasksAreKeptOnce) {
  const auto grammar = Must(BuildGrammar([](GrammarBuilder& b) {
    return b.Sequence({b.Repeat(b.CodePoint({{0x20, 0x10FFFF}}), 0, 40), b.Text("\n")});
  }));
  const auto trie = Must(TokenTrie::Create({"a", "abc", "ab\n", "\n", "b\n\n"}, {}));
  // Room for all; for two masks with tokens of their own, but for some that share them; for none.
  for (const size_t cache_bytes : {size_t{1} << 20, size_t{500}, size_t{0}}) {
    Automaton automaton(*grammar);
    TokenMasks masks(automaton, *trie, {}, size_t{1} << 20, cache_bytes);
    const uint8_t a = grammar->class_of['a'];
    for (int round = 0; round < 2; ++round) {
      Automaton::Config config = automaton.Start();
      const auto first = Must(masks.Of(&config));
      for (int left = 40; left >= 0; --left) {
        const auto mask = Must(masks.Of(&config));
        const uint64_t expected = left >= 3 ? 15 : left == 2 ? 13 : left == 1 ? 9 : 8;
        EXPECT_EQ((*mask)[0], expected) << left;
        if (cache_bytes > 500) {
          EXPECT_EQ(mask == first, left >= 3) << left;
        }
        config = automaton.Step(config, a);
      }
      EXPECT_EQ(config, Automaton::kDead);
    }
  }
}

// All texts of up to 16 letters, a or b.
std::vector<std::string> TokensOfTwoLetters() {
  std::vector<std::string> tokens = {"a", "b"};
  for (size_t i = 0; i < tokens.size() && tokens[i].size() < 16; ++i) {
    for (const char c : {'a', 'b'}) tokens.push_back(tokens[i] + c);
  }
  return tokens;
}

// 5000 ways to read each text, for tens of thousands of beginnings of tokens.
TEST(TokenMasksTest, MasksThatTakeTooMuchWorkAreAnError) {
  const std::vector<std::string> tokens = TokensOfTwoLetters();
  ByteSet letters;
  letters.set('a').set('b');
  const auto matcher = [&](size_t ways) {
    const auto grammar = Must(BuildGrammar([&](GrammarBuilder& b) {
      std::vector<GrammarBuilder::Expr> texts;
      for (size_t i = 0; i < ways; ++i) {
        texts.push_back(b.Sequence({b.Repeat(b.Byte(letters), 20, 20), b.Text("!")}));
      }
      return b.Choice(std::move(texts));
    }));
    return GrammarMatcher(
        Must(CompiledGrammar::Create(grammar, {.tokens = Must(TokenTrie::Create(tokens, {}))})));
  };
  GrammarMatcher few = matcher(100), many = matcher(5000);
  EXPECT_NE(Must(few.Allowed())[0], 0u);
  for (int round = 0; round < 2; ++round) {
    const absl::Status status = many.Allowed().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
    EXPECT_NE(status.message().find("too many of these for the tokens"), std::string::npos);
    EXPECT_TRUE(Must(many.Accept(round)));  // what was read before is not lost
  }
  EXPECT_TRUE(Must(many.AcceptBytes(std::string(18, 'a') + "!")));
  EXPECT_TRUE(Must(many.MustEnd()));
}

// Four rules that a text may be in, none of which takes too much alone.
TEST(TokenMasksTest, WorkIsThatOfAllGroupsTogether) {
  ByteSet letters;
  letters.set('a').set('b');
  const auto matcher = [&](size_t rules) {
    GrammarBuilder b;
    std::vector<GrammarBuilder::Expr> calls;
    for (size_t i = 0; i < rules; ++i) {
      std::vector<GrammarBuilder::Expr> ways;
      for (int way = 0; way < 300; ++way)
        ways.push_back(b.Sequence({b.Repeat(b.Byte(letters), 20, 20), b.Text("!")}));
      const auto rule = b.Declare("rule");
      b.Define(rule, b.Choice(std::move(ways)));
      calls.push_back(b.Sequence({b.Call(rule), b.Text(std::string(1, '0' + i))}));
    }
    const auto root = b.Declare("root");
    b.Define(root, b.Choice(std::move(calls)));
    return GrammarMatcher(Must(
        CompiledGrammar::Create(Must(std::move(b).Build(root)),
                                {.tokens = Must(TokenTrie::Create(TokensOfTwoLetters(), {}))})));
  };
  GrammarMatcher one = matcher(1), four = matcher(4);
  EXPECT_TRUE(Must(one.AcceptBytes("a")));
  EXPECT_TRUE(one.Allowed().ok());
  EXPECT_TRUE(Must(four.AcceptBytes("a")));
  EXPECT_EQ(four.Allowed().status().code(), absl::StatusCode::kResourceExhausted);
}

// Steps through many rules that all end with the byte, so that few states are left of them.
TEST(TokenMasksTest, WorkIsAlsoWhatStepsFindOnTheWay) {
  ByteSet letters;
  letters.set('a').set('b');
  const auto trie = Must(TokenTrie::Create(TokensOfTwoLetters(), {}));
  const auto allowed = [&](size_t rules) {
    GrammarBuilder b;
    std::vector<GrammarBuilder::Expr> calls;
    for (size_t i = 0; i < rules; ++i) {
      const auto rule = b.Declare("letter");
      b.Define(rule, b.Byte(letters));
      calls.push_back(b.Call(rule));
    }
    const auto letter = b.Declare("any letter"), root = b.Declare("root");
    b.Define(letter, b.Choice(std::move(calls)));
    b.Define(root, b.Repeat(b.Call(letter), 1, std::nullopt));
    GrammarMatcher matcher(
        Must(CompiledGrammar::Create(Must(std::move(b).Build(root)), {.tokens = trie})));
    return matcher.Allowed().status();
  };
  EXPECT_TRUE(allowed(100).ok());
  EXPECT_EQ(allowed(1000).code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace inlay
