// Any grammar and any text, read whole, byte by byte and with a cache of no size; and the mask of
// allowed tokens is what each token's bytes say.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/token_trie.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/gemma_like/grammar/random_grammar.h"
#include "tests/must.h"

namespace inlay {
namespace {

constexpr int32_t kEnd = 3;

std::shared_ptr<const TokenTrie> MakeVocabulary(FuzzInput& input) {
  std::vector<std::string> pieces = {"", "", "", "<end>", "a", "\"", "}", ",", ":1", "\xC3\xA9"};
  for (size_t n = input.UpTo(20); n > 0; --n) pieces.push_back(input.Text(5));
  return Must(TokenTrie::Create(pieces, {0, 1, 2}));
}

bool Has(absl::Span<const uint64_t> bits, int32_t token) {
  return (bits[token / 64] >> token % 64 & 1) != 0;
}

void CheckAllowed(const TokenTrie& trie, GrammarMatcher& matcher, GrammarMatcher& forgetful) {
  const auto allowed = matcher.Allowed(), same = forgetful.Allowed();
  INLAY_FUZZ_CHECK(allowed.ok() == same.ok());
  if (!allowed.ok()) return;
  INLAY_FUZZ_CHECK(*allowed == *same);
  for (int32_t token = 0; token < static_cast<int32_t>(trie.size()); ++token) {
    GrammarMatcher copy = matcher;
    const auto accepted = copy.Accept(token);
    INLAY_FUZZ_CHECK(!accepted.ok() || *accepted == Has(*allowed, token));
  }
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  const auto trie = MakeVocabulary(input);
  const UpTo up_to = [&](size_t most) { return input.UpTo(most); };
  const auto grammar = RandomGrammar::Make(up_to, /*objects=*/true).Build();
  if (!grammar.ok()) {
    INLAY_FUZZ_CHECK(!grammar.status().message().empty());
    return 0;
  }
  const auto matcher_of = [&](size_t cache_bytes) {
    return GrammarMatcher(Must(CompiledGrammar::Create(
        *grammar, {.tokens = trie, .ends = {kEnd}, .cache_bytes = cache_bytes})));
  };
  GrammarMatcher bytewise = matcher_of(size_t{1} << 20), forgetful = matcher_of(0);
  const std::string text = input.Rest().substr(0, 64);
  CheckAllowed(*trie, bytewise, forgetful);
  for (size_t i = 0; i < text.size(); ++i) {
    GrammarMatcher whole = matcher_of(size_t{1} << 20);
    const auto accepted = bytewise.AcceptBytes(text.substr(i, 1));
    const auto at_once = whole.AcceptBytes(text.substr(0, i + 1));
    INLAY_FUZZ_CHECK(accepted.ok() == at_once.ok());
    if (!accepted.ok()) return 0;
    INLAY_FUZZ_CHECK(*accepted == *at_once);
    INLAY_FUZZ_CHECK(*accepted == *forgetful.AcceptBytes(text.substr(i, 1)));
    if (!*accepted) return 0;
    INLAY_FUZZ_CHECK(*bytewise.CanEnd() == *whole.CanEnd());
    const std::string forced = *bytewise.ForcedBytes(8);
    GrammarMatcher ahead = bytewise;
    INLAY_FUZZ_CHECK(*ahead.AcceptBytes(forced));
    CheckAllowed(*trie, bytewise, forgetful);
  }
  return 0;
}
