// From what a GrammarBuilder collected to a grammar.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_GRAMMAR_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "gemma_like/grammar/grammar.h"
#include "gemma_like/grammar/grammar_source.h"

namespace inlay {

// The errors of GrammarBuilder::Build but for those of its status().
absl::StatusOr<std::shared_ptr<const Grammar>> CompileGrammar(const GrammarSource& source,
                                                              int32_t start);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_COMPILE_GRAMMAR_H_
