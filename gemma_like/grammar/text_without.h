// Texts in which certain texts do not occur.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_TEXT_WITHOUT_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_TEXT_WITHOUT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

// Any text, the empty one too, that has none of `markers` in it. Markers are ASCII, begin with the
// same character and have it nowhere else: InvalidArgument for others, and for none.
absl::StatusOr<GrammarBuilder::Expr> AddTextWithout(GrammarBuilder& builder,
                                                    std::vector<std::string> markers);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_TEXT_WITHOUT_H_
