// Grammars by chance, and a slow reader of their texts to hold the automaton against.
#ifndef INLAY_TESTS_GEMMA_LIKE_GRAMMAR_RANDOM_GRAMMAR_H_
#define INLAY_TESTS_GEMMA_LIKE_GRAMMAR_RANDOM_GRAMMAR_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "gemma_like/grammar/grammar_builder.h"

namespace inlay {

// A number from 0 to the argument, as a test or a fuzzer chooses.
using UpTo = std::function<size_t(size_t most)>;

struct RandomGrammar {
  enum class Kind {
    kEmpty,
    kNothing,
    kBytes,
    kText,
    kCodePoint,
    kSequence,
    kChoice,
    kRepeat,
    kCall,
    kControl,
    kObject
  };
  struct Expr {
    Kind kind = Kind::kEmpty;
    std::string text = {};  // kText; kBytes: the bytes of the set
    std::vector<CodePointRange> ranges = {};
    std::vector<size_t> parts = {};
    size_t least = 0, most = 0;  // kRepeat; `most` above kMany: without a bound
    size_t rule = 0;             // kCall
    GrammarObject object = {};
  };
  static constexpr size_t kMany = 3;

  std::vector<Expr> exprs;
  std::vector<size_t> rules;  // their expressions; the first is where texts start

  // With objects and control tokens, or without, as ReferenceReader needs it.
  static RandomGrammar Make(const UpTo& up_to, bool objects);

  absl::StatusOr<std::shared_ptr<const Grammar>> Build() const;
};

// Tries everything that is possible. For grammars without objects and left recursion.
class ReferenceReader {
 public:
  ReferenceReader(const RandomGrammar& grammar, absl::string_view text);

  bool IsWhole() { return Ends(grammar_.rules[0], 0).count(text_.size()) > 0; }
  bool IsBeginning() { return Covers(grammar_.rules[0], 0); }

 private:
  using Positions = std::set<size_t>;

  // Where a text of the expression that starts at `from` may end.
  const Positions& Ends(size_t expr, size_t from);
  Positions FindEnds(size_t expr, size_t from);
  // Whether everything from `from` on begins a text of the expression, or is one.
  bool Covers(size_t expr, size_t from);
  bool CoversParts(const std::vector<size_t>& parts, size_t from);
  bool FindProductive(size_t expr) const;

  const RandomGrammar& grammar_;
  const std::string text_;
  std::vector<bool> productive_;  // by expression: it has a text
  std::map<std::pair<size_t, size_t>, Positions> ends_;
};

}  // namespace inlay

#endif  // INLAY_TESTS_GEMMA_LIKE_GRAMMAR_RANDOM_GRAMMAR_H_
