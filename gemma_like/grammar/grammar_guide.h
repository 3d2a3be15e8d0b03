// Keeps an answer to its shape: which tokens may come next, and which must.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_GUIDE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_GUIDE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/answer_grammars.h"
#include "gemma_like/grammar/grammar_matcher.h"
#include "gemma_like/grammar/token_trie.h"
#include "io/tokenizer/tokenizer.h"

namespace inlay {

// What it says depends on the shape and on the tokens so far, on nothing else.
class GrammarGuide {
 public:
  // The tokenizer must outlive it.
  GrammarGuide(const Tokenizer& tokenizer, std::shared_ptr<const AnswerGrammar> grammar);

  // The tokens that may come next, a bit for each; valid until the next call. Tokens that Accept
  // refused are not among them. FailedPrecondition if there is none: the vocabulary lacks what the
  // grammar needs. ResourceExhausted as GrammarMatcher.
  absl::StatusOr<absl::Span<const uint64_t>> Allowed();

  // Takes the next token. False, with nothing changed, if it cannot come here: Allowed() lets pass
  // some tokens that end the thoughts before the shape and do not begin it well.
  absl::StatusOr<bool> Accept(int32_t token);

  // The tokens that must come next, as the tokenizer writes the text that must. It leaves out those
  // that might be others if the text went on differently; often there are none.
  absl::StatusOr<std::vector<int32_t>> Forced();

  // Whether the answer is complete and cannot go on.
  absl::StatusOr<bool> IsComplete();

 private:
  absl::StatusOr<bool> AcceptFree(int32_t token);
  void Set(int32_t token);  // in allowed_
  void Clear(int32_t token);

  const Tokenizer& tokenizer_;
  const std::shared_ptr<const AnswerGrammar> grammar_;
  GrammarMatcher matcher_;
  bool waits_;              // for the end of the thoughts
  bool may_space_ = false;  // between the thoughts and the shape
  std::string tail_;        // the last bytes of the thoughts, in which their end may begin
  TokenBits allowed_;       // a copy, without refused tokens
  std::vector<int32_t> refused_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_GUIDE_H_
