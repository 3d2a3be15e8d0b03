// A grammar with what its matchers share.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_COMPILED_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_COMPILED_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/automaton.h"
#include "gemma_like/grammar/grammar.h"
#include "gemma_like/grammar/token_masks.h"
#include "gemma_like/grammar/token_trie.h"

namespace inlay {

struct CompiledGrammarOptions {
  // Whose tokens matchers are asked for; without it they read bytes only.
  std::shared_ptr<const TokenTrie> tokens = nullptr;
  // The tokens that end an answer: they are allowed exactly where the text is complete.
  std::vector<int32_t> ends = {};
  // About what is kept of the work at most: three quarters masks of tokens, of which the most
  // recently used ones stay, and one quarter states, which are dropped together.
  size_t cache_bytes = size_t{64} << 20;
};

// May be shared by any number of threads, each with matchers of its own. What was found for one
// matcher is kept for all, within a bound; it changes the time that answers take, never the
// answers.
class CompiledGrammar {
 public:
  // Fails, without memory, with ResourceExhausted. All of options.ends are tokens.
  static absl::StatusOr<std::shared_ptr<CompiledGrammar>> Create(
      std::shared_ptr<const Grammar> grammar, const CompiledGrammarOptions& options = {});

 private:
  friend class GrammarMatcher;

  // A configuration of automaton_, while `epoch` is its epoch.
  struct Place {
    uint64_t epoch = 0;
    Automaton::Config config = Automaton::kDead;
  };

  CompiledGrammar(std::shared_ptr<const Grammar> grammar, const CompiledGrammarOptions& options)
      : grammar_(std::move(grammar)), options_(options), automaton_(*grammar_) {
    if (options.tokens != nullptr) {
      masks_.emplace(automaton_, *options.tokens, options.ends, state_bytes(),
                     options.cache_bytes - state_bytes());
    }
  }

  // The place after `text`, which was read before: `place` if it is still known.
  absl::Status Find(absl::string_view text, Place* place);
  // Reads on from a place that is known; kDead in `place` where the text is not accepted.
  absl::Status Read(absl::string_view bytes, Place* place);
  void LimitMemory(Place* place);
  // Of the automaton. Dropping its states takes time that a token waits for, so they get less.
  size_t state_bytes() const { return options_.cache_bytes / 4; }
  // The tokens that may come next.
  absl::StatusOr<std::shared_ptr<const TokenBits>> AllowedAt(Place* place);
  // The only byte that may come next, where the text must go on.
  std::optional<uint8_t> OnlyByte(Automaton::Config config);

  const std::shared_ptr<const Grammar> grammar_;
  const CompiledGrammarOptions options_;
  std::mutex mutex_;  // of what follows
  Automaton automaton_;
  std::optional<TokenMasks> masks_;
  bool broken_ = false;  // std::bad_alloc came in the middle of a change
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_COMPILED_GRAMMAR_H_
