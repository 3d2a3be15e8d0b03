#include "gemma_like/grammar/automaton.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "tests/gemma_like/grammar/grammar_text.h"
#include "tests/gemma_like/grammar/random_grammar.h"

namespace inlay {
namespace {

UpTo Chance(uint64_t seed) {
  auto random = std::make_shared<std::mt19937_64>(seed);
  return [random](size_t most) { return static_cast<size_t>((*random)() % (most + 1)); };
}

// Bytes that the random grammars are made of, and others now and then.
std::string RandomText(const UpTo& up_to) {
  constexpr absl::string_view kBytes = "aaabbb1\"\\{, \xC3\xA9\xED\x9F\xBF";
  std::string text;
  for (size_t n = up_to(8); n > 0; --n) text += kBytes[up_to(kBytes.size() - 1)];
  return text;
}

TEST(AutomatonTest, ReadsWhatTheReferenceReads) {
  size_t grammars = 0, whole = 0, beginnings = 0;
  for (uint64_t seed = 0; seed < 6000; ++seed) {
    SCOPED_TRACE(seed);
    const UpTo up_to = Chance(seed);
    const RandomGrammar random = RandomGrammar::Make(up_to, /*objects=*/false);
    const auto built = random.Build();
    if (!built.ok()) continue;  // left-recursive, or nothing matches
    ++grammars;
    const auto grammar = Must(CompiledGrammar::Create(*built));
    for (int i = 0; i < 20; ++i) {
      // Grown byte by byte, so that many texts get somewhere.
      GrammarMatcher matcher(grammar);
      std::string text = i % 2 == 0 ? "" : RandomText(up_to);
      for (int more = 0; more < 6; ++more) {
        ReferenceReader reference(random, text);
        const Reads reads = Read(grammar, text);
        ASSERT_EQ(reads != Reads::kNot, reference.IsBeginning()) << text;
        ASSERT_EQ(reads == Reads::kWhole, reference.IsWhole()) << text;
        whole += reads == Reads::kWhole;
        beginnings += reads == Reads::kAsBeginning;
        if (reads == Reads::kNot && !text.empty()) text.pop_back();
        text += RandomText([&](size_t most) { return most == 8 ? 1 : up_to(most); });
      }
    }
  }
  EXPECT_GT(grammars, 1000u);
  EXPECT_GT(whole, 1000u);
  EXPECT_GT(beginnings, 1000u);
}

}  // namespace
}  // namespace inlay
