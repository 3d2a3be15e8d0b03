// read_by_schema: for each line of standard input, {"schema": TEXT, "documents": [TEXT...]}, a line
// with what the schema's grammars make of the documents, {"accepts": [BOOLEAN...], "serialized":
// [BOOLEAN...]}, with any white space and with that of serializers, or with why there are none,
// {"error": SENTENCE}.
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/json_schema.h"
#include "io/json/parse_json.h"
#include "tests/must.h"

namespace inlay {
namespace {

bool Accepts(const std::shared_ptr<CompiledGrammar>& grammar, const std::string& document) {
  GrammarMatcher matcher(grammar);
  return Must(matcher.AcceptBytes(document)) && Must(matcher.CanEnd());
}

absl::StatusOr<Json> Verdicts(const Json& line, JsonSpace space) {
  INLAY_ASSIGN_OR_RETURN(const auto grammar,
                         CompileJsonSchema(line["schema"].get_ref<const std::string&>(),
                                           {.in_order = false, .space = space}));
  const auto compiled = Must(CompiledGrammar::Create(grammar));
  Json accepts = Json::array();
  for (const Json& document : line["documents"])
    accepts.push_back(Accepts(compiled, document.get_ref<const std::string&>()));
  return accepts;
}

Json Answer(const Json& line) {
  auto accepts = Verdicts(line, JsonSpace::kAny),
       serialized = Verdicts(line, JsonSpace::kSerialized);
  for (const auto& verdicts : {accepts, serialized})
    if (!verdicts.ok()) return {{"error", std::string(verdicts.status().message())}};
  return {{"accepts", *std::move(accepts)}, {"serialized", *std::move(serialized)}};
}

}  // namespace
}  // namespace inlay

int main() {
  std::string line;
  while (std::getline(std::cin, line))
    std::cout << inlay::DumpJson(inlay::Answer(*inlay::Must(inlay::ParseJson("a line", line))))
              << "\n";
}
