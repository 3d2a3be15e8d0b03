// Any text as a grammar in GBNF, and after a zero byte any bytes for it: refused with a sentence,
// or a grammar that reads them within its bounds, and whose forced bytes it accepts.
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/gbnf_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/grammar_refusal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(input.find('\0'), input.size());
  const auto grammar = ParseGbnf(absl::string_view(input).substr(0, zero));
  if (!grammar.ok()) {
    CheckGrammarRefusal(grammar.status());
    return 0;
  }
  const auto compiled = CompiledGrammar::Create(*grammar);
  if (!compiled.ok()) {
    CheckGrammarRefusal(compiled.status());
    return 0;
  }
  GrammarMatcher matcher(*compiled);
  for (const char byte : input.substr(std::min(zero + 1, input.size())).substr(0, 200)) {
    const auto accepts = matcher.AcceptBytes({&byte, 1});
    if (!accepts.ok()) CheckGrammarRefusal(accepts.status());
    if (!accepts.ok() || !*accepts) break;
  }
  const auto forced = matcher.ForcedBytes(20);
  if (!forced.ok()) {
    CheckGrammarRefusal(forced.status());
    return 0;
  }
  const auto accepts = matcher.AcceptBytes(*forced);
  INLAY_FUZZ_CHECK(!accepts.ok() || *accepts);
  return 0;
}
