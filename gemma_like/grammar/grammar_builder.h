// Builds a context-free grammar over bytes.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_BUILDER_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_BUILDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gemma_like/grammar/grammar_source.h"
#include "gemma_like/grammar/utf8_machine.h"

namespace inlay {

class Grammar;

// Expressions and rules are numbers that mean something to this builder only. An expression may be
// used several times; each use adds its states to the grammar.
//
// The byte 0xFF, which UTF-8 never has, introduces control tokens: no other expression accepts it.
class GrammarBuilder {
 public:
  using Expr = int32_t;
  using Rule = int32_t;
  using Member = GrammarMember;
  using Object = GrammarObject;

  explicit GrammarBuilder(size_t most_bytes = kMostGrammarBytes) : most_bytes_(most_bytes) {}

  Expr Empty();                     // the empty text
  Expr Nothing();                   // no text at all
  Expr Byte(const ByteSet& bytes);  // one byte out of the set
  Expr Text(absl::string_view bytes);
  // One code point, in UTF-8, out of ascending, disjoint ranges. Surrogates do not count.
  Expr CodePoint(absl::Span<const CodePointRange> ranges);
  Expr Sequence(std::vector<Expr> parts);
  Expr Choice(std::vector<Expr> options);
  // `least` to `most` times; without `most`, any number of times from `least`.
  Expr Repeat(Expr part, size_t least, std::optional<size_t> most);
  // A control token of the vocabulary, 0 to 2^24 - 1, which no bytes can replace.
  Expr ControlToken(int32_t token);
  Expr AnyObject(Object object);
  Expr Chain(ChainRule chain);
  // As Repeat, without states for each time: for large numbers, of texts that are not empty and
  // after each of which the next one can only begin, not the same one go on.
  Expr Counted(Rule part, size_t least, std::optional<size_t> most);

  // A rule to be defined once; the name appears in errors.
  Rule Declare(std::string name);
  void Define(Rule rule, Expr expr);
  // What Build says if there is no text, `rule` has none, and no rule that it calls explains more.
  void Explain(Rule rule, std::string why_empty);
  Expr Call(Rule rule);

  // ResourceExhausted once more was added than Build takes. From then on nothing more is kept, and
  // Build returns this. Whoever adds what a user wrote asks for it now and then, to stop early.
  const absl::Status& status() const { return status_; }

  // The grammar of the texts of `start`. InvalidArgument for a rule that is left-recursive or not
  // defined, for an object that lists a name twice, and for a grammar that no text can match;
  // ResourceExhausted for more than kMostGrammarStates, `most_bytes` or kMostExpressionDepth, and
  // for rules that begin with each other more than kMostLeftCalls deep. The message names the rule.
  absl::StatusOr<std::shared_ptr<const Grammar>> Build(Rule start) &&;

 private:
  using Kind = GrammarExpr::Kind;

  Expr Add(GrammarExpr expr);
  Expr AddParts(Kind kind, std::vector<Expr> parts);
  // Counts what is about to be kept; false if it may not be.
  bool TakeBytes(size_t bytes);

  GrammarSource source_;
  const size_t most_bytes_;
  size_t bytes_ = 0;     // of what is kept
  uint64_t states_ = 0;  // of the rules that are defined
  absl::Status status_;
};

// How a control token is spelled as bytes: 0xFF and the three bytes of its id.
std::string ControlTokenSpelling(int32_t token);
inline constexpr uint8_t kControlTokenByte = 0xFF;

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_BUILDER_H_
