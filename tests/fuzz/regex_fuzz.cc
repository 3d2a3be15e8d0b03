// Any text as a regular expression, and after a zero byte any text for it: the grammar and the
// automaton of the same expression say the same of it.
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/json_spelling.h"
#include "gemma_like/grammar/regex_grammar.h"
#include "gemma_like/grammar/text_automaton.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/grammar_refusal.h"

namespace inlay {
namespace {

// The texts in which `regex` is found, and a zero byte, so that there is one in any case.
absl::StatusOr<std::shared_ptr<CompiledGrammar>> Texts(const Regex& regex,
                                                       CharacterSpelling spelling) {
  GrammarBuilder builder;
  CharacterSpeller speller(builder, spelling);
  const auto rule = builder.Declare("texts");
  const Regex* const regexes[] = {&regex};
  TextBudget budget;
  const auto texts = AddText(builder, speller, {regexes, 0, std::nullopt}, budget);
  if (!texts.ok()) return texts.status();
  builder.Define(rule, builder.Choice({*texts, builder.ControlToken(1)}));
  auto grammar = std::move(builder).Build(rule);
  if (!grammar.ok()) return grammar.status();
  return CompiledGrammar::Create(*grammar);
}

std::optional<bool> Accepts(const Regex& regex, CharacterSpelling spelling,
                            absl::string_view text) {
  const auto grammar = Texts(regex, spelling);
  if (!grammar.ok()) {
    CheckGrammarRefusal(grammar.status());
    return std::nullopt;
  }
  GrammarMatcher matcher(*grammar);
  const auto accepts = matcher.AcceptBytes(text);
  if (!accepts.ok()) return std::nullopt;
  if (!*accepts) return false;
  const auto ends = matcher.CanEnd();
  return ends.ok() ? std::optional<bool>(*ends) : std::nullopt;
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  const std::string input(reinterpret_cast<const char*>(data), size);
  const size_t zero = std::min(input.find('\0'), input.size());
  const auto regex = ParseRegex(absl::string_view(input).substr(0, zero));
  if (!regex.ok()) {
    CheckGrammarRefusal(regex.status());
    return 0;
  }
  const std::string text = input.substr(std::min(zero + 1, input.size())).substr(0, 200);
  if (!IsValidUtf8(text)) return 0;
  TextBudget budget;
  const Regex* regexes[] = {&*regex};
  const auto expected = Satisfies({regexes, 0, std::nullopt}, text, budget);
  if (!expected.ok()) {
    CheckGrammarRefusal(expected.status());
    return 0;
  }
  const auto plain = Accepts(*regex, CharacterSpelling::kPlain, text);
  if (plain) INLAY_FUZZ_CHECK(*plain == *expected);
  const std::string quoted = JsonSpelling(text);
  const auto json = Accepts(*regex, CharacterSpelling::kJsonString,
                            absl::string_view(quoted).substr(1, quoted.size() - 2));
  if (json) INLAY_FUZZ_CHECK(*json == *expected);
  return 0;
}
