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

namespace inlay {

struct CompiledGrammarOptions {
  size_t cache_bytes = size_t{64} << 20;  // what is kept of the work at most, about
};

// May be shared by any number of threads, each with matchers of its own. What was found for one
// matcher is kept for all, within a bound; it changes the time that answers take, never the
// answers.
class CompiledGrammar {
 public:
  static absl::StatusOr<std::shared_ptr<CompiledGrammar>> Create(
      std::shared_ptr<const Grammar> grammar, const CompiledGrammarOptions& options = {});

 private:
  friend class GrammarMatcher;

  // A configuration of automaton_, while `epoch` is epoch_.
  struct Place {
    uint64_t epoch = 0;
    Automaton::Config config = Automaton::kDead;
  };

  CompiledGrammar(std::shared_ptr<const Grammar> grammar, const CompiledGrammarOptions& options)
      : grammar_(std::move(grammar)), options_(options), automaton_(*grammar_) {}

  // The place after `text`, which was read before: `place` if it is still known.
  absl::Status Find(absl::string_view text, Place* place);
  // Reads on from a place that is known; kDead in `place` where the text is not accepted.
  absl::Status Read(absl::string_view bytes, Place* place);
  void LimitMemory(Place* place);
  // The only byte that may come next, where the text must go on.
  std::optional<uint8_t> OnlyByte(Automaton::Config config);

  const std::shared_ptr<const Grammar> grammar_;
  const CompiledGrammarOptions options_;
  std::mutex mutex_;  // of what follows
  Automaton automaton_;
  uint64_t epoch_ = 1;   // of the numbers of configurations
  bool broken_ = false;  // std::bad_alloc came in the middle of a change
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_COMPILED_GRAMMAR_H_
