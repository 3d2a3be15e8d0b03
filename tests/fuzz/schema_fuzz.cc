// Any text as a JSON schema, and after a zero byte any text as a document: refused with a sentence,
// or a grammar whose texts are JSON.
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/json_schema.h"
#include "nlohmann/json.hpp"
#include "tests/fuzz/fuzz_input.h"
#include "tests/fuzz/grammar_refusal.h"

namespace inlay {
namespace {

// Whether the whole text is one of the grammar's; false too where that is too ambiguous to say.
bool Accepts(const std::shared_ptr<CompiledGrammar>& grammar, absl::string_view text) {
  GrammarMatcher matcher(grammar);
  const auto accepts = matcher.AcceptBytes(text);
  if (!accepts.ok()) CheckGrammarRefusal(accepts.status());
  if (!accepts.ok() || !*accepts) return false;
  const auto ends = matcher.CanEnd();
  if (!ends.ok()) CheckGrammarRefusal(ends.status());
  return ends.ok() && *ends;
}

// A text that the grammar accepts, as far as the document and some bytes that JSON often has lead.
std::string Walk(const std::shared_ptr<CompiledGrammar>& grammar, absl::string_view document) {
  static constexpr absl::string_view kTries = "\"}]0,:{[antfu1-eE.rlsu+a\\";
  GrammarMatcher matcher(grammar);
  std::string text;
  for (size_t i = 0; i < 200; ++i) {
    const auto end = matcher.CanEnd();
    if (!end.ok() || (*end && i >= document.size())) break;
    std::string tries(kTries);
    if (i < document.size()) tries.insert(0, 1, document[i]);
    const size_t before = text.size();
    for (const char c : tries) {
      const auto accepts = matcher.AcceptBytes({&c, 1});
      if (!accepts.ok() || !*accepts) continue;
      text.push_back(c);
      break;
    }
    if (text.size() == before) break;
  }
  return text;
}

}  // namespace
}  // namespace inlay

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace inlay;
  FuzzInput input(data, size);
  JsonSchemaOptions options;
  const uint8_t choice = input.Byte();
  options.in_order = choice % 2 == 1;
  options.space = choice / 2 % 2 == 1 ? JsonSpace::kAny : JsonSpace::kSerialized;
  const std::string rest = input.Rest();
  const size_t zero = std::min(rest.find('\0'), rest.size());
  const absl::string_view document =
      absl::string_view(rest).substr(std::min(zero + 1, rest.size()));
  const auto schema = CompileJsonSchema(absl::string_view(rest).substr(0, zero), options);
  if (!schema.ok()) {
    CheckGrammarRefusal(schema.status());
    return 0;
  }
  const auto grammar = CompiledGrammar::Create(*schema);
  if (!grammar.ok()) {
    CheckGrammarRefusal(grammar.status());
    return 0;
  }
  for (const std::string& text : {std::string(document), Walk(*grammar, document)})
    if (Accepts(*grammar, text)) INLAY_FUZZ_CHECK(nlohmann::json::accept(text));
  return 0;
}
