// Follows one answer through a grammar, token by token.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_MATCHER_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_MATCHER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/compiled_grammar.h"
#include "gemma_like/grammar/token_trie.h"

namespace inlay {

// A copy goes its own way. Not thread-safe itself; matchers of one grammar may be used by different
// threads. Errors are ResourceExhausted: a grammar that is too ambiguous, or no memory; they leave
// the matcher as it was.
class GrammarMatcher {
 public:
  // Before any text.
  explicit GrammarMatcher(std::shared_ptr<CompiledGrammar> grammar);

  // The tokens that may come next: those whose bytes some text of the grammar goes on with, and the
  // ends where the text is complete; none after an end. Valid while the matcher exists and until
  // the next call. The grammar must have tokens.
  absl::StatusOr<absl::Span<const uint64_t>> Allowed();

  // Reads the token if it is allowed; otherwise returns false and changes nothing.
  absl::StatusOr<bool> Accept(int32_t token);

  // Reads the bytes if some text of the grammar goes on so; otherwise returns false and changes
  // nothing.
  absl::StatusOr<bool> AcceptBytes(absl::string_view bytes);

  // Whether an end was accepted, after which nothing is.
  bool ended() const { return ended_; }

  // Whether the text so far is a whole text of the grammar.
  absl::StatusOr<bool> CanEnd();

  // Whether it is one that cannot go on.
  absl::StatusOr<bool> MustEnd();

  // The bytes, at most `most`, that must come next: there is no other way to go on, nor may the
  // text end before the last of them. They end before control tokens, which are no text.
  absl::StatusOr<std::string> ForcedBytes(size_t most);

 private:
  // act(place), the place being the one after text_, with the grammar locked.
  template <class Act>
  auto Locked(const Act& act) -> decltype(act(static_cast<CompiledGrammar::Place*>(nullptr)));

  std::shared_ptr<CompiledGrammar> grammar_;
  CompiledGrammar::Place place_;
  std::string text_;
  bool ended_ = false;  // by a token
  std::shared_ptr<const TokenBits> allowed_;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_MATCHER_H_
