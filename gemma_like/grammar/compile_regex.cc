#include "gemma_like/grammar/compile_regex.h"

#include <optional>
#include <utility>

#include "base/out_of_memory.h"
#include "base/status_macros.h"
#include "gemma_like/grammar/character_speller.h"
#include "gemma_like/grammar/grammar_builder.h"
#include "gemma_like/grammar/regex_parser.h"
#include "gemma_like/grammar/text_automaton.h"

namespace inlay {

absl::StatusOr<std::shared_ptr<const Grammar>> CompileRegex(absl::string_view pattern) {
  return OrOutOfMemory(
      "a regular expression", [&]() -> absl::StatusOr<std::shared_ptr<const Grammar>> {
        INLAY_ASSIGN_OR_RETURN(Regex regex, ParseRegex(pattern));
        // What is searched for is the whole text then.
        for (RegexBranch& branch : regex.branches) branch.from_start = branch.to_end = true;
        const Regex* const regexes[] = {&regex};
        TextBudget budget;
        GrammarBuilder builder;
        CharacterSpeller speller(builder, CharacterSpelling::kPlain);
        const auto rule = builder.Declare("the regular expression");
        INLAY_ASSIGN_OR_RETURN(const GrammarBuilder::Expr texts,
                               AddText(builder, speller, {regexes, 0, std::nullopt}, budget));
        builder.Define(rule, texts);
        return std::move(builder).Build(rule);
      });
}

}  // namespace inlay
