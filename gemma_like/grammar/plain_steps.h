// What all plain characters have in common in a configuration, so that most tokens need not be
// tried one by one.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_PLAIN_STEPS_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_PLAIN_STEPS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/grammar/automaton.h"

namespace inlay {

// Plain characters are those of TokenTrie. The automaton must outlive the object.
class PlainSteps {
 public:
  explicit PlainSteps(Automaton& automaton);

  // The configuration that every plain character leads to from `config`: kDead where none is
  // accepted, kDiffer where they lead to several or too large ones, or after more than kMostWork.
  static constexpr Automaton::Config kDiffer = Automaton::kTooMany;
  static constexpr uint64_t kMostWork = 100'000'000;
  // Adds to `work` the states of the grammar that were looked at, now or when this was found, and
  // what steps cost beyond these.
  Automaton::Config Step(Automaton::Config config, uint64_t* work);

  // Whether every plain character leads back to `config`.
  bool IsLoop(Automaton::Config config, uint64_t* work);

 private:
  using Classes = std::vector<uint8_t>;

  // The continuation bytes that may follow: the classes of the first one, and those after it.
  struct Rest {
    Classes first;
    size_t more;
  };

  // UTF-8 characters of several bytes: the classes of their first bytes, and what follows.
  struct Lead {
    Classes bytes;
    Rest rest;
  };

  Automaton::Config Find(Automaton::Config config);
  Automaton::Config StepByte(Automaton::Config config, uint8_t byte_class);
  // The one configuration after these bytes, if there is one.
  Automaton::Config After(Automaton::Config config, const Classes& classes, size_t more);

  Automaton& automaton_;
  Classes ascii_, continuation_;
  std::vector<Lead> leads_;
  uint64_t epoch_;
  struct Found {
    Automaton::Config next;
    uint64_t work;
  };
  std::unordered_map<Automaton::Config, Found> steps_;
  uint64_t work_ = 0;  // of the step that is being found
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_PLAIN_STEPS_H_
