// How what is no grammar, or too large a one, is refused.
#ifndef INLAY_TESTS_FUZZ_GRAMMAR_REFUSAL_H_
#define INLAY_TESTS_FUZZ_GRAMMAR_REFUSAL_H_

#include "absl/status/status.h"
#include "tests/fuzz/fuzz_input.h"

namespace inlay {

inline void CheckGrammarRefusal(const absl::Status& status) {
  INLAY_FUZZ_CHECK(absl::IsInvalidArgument(status) || absl::IsResourceExhausted(status));
  INLAY_FUZZ_CHECK(!status.message().empty());
}

}  // namespace inlay

#endif  // INLAY_TESTS_FUZZ_GRAMMAR_REFUSAL_H_
