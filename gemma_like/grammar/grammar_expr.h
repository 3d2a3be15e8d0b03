// What a GrammarBuilder collects, before it is compiled.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_EXPR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_EXPR_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "gemma_like/grammar/utf8_machine.h"

namespace inlay {

// Which white space JSON objects and lists may have.
enum class JsonSpace {
  // What serializers write, so that a model cannot go on with white space for long. At each place
  // nothing or one space; after '{', '[' and ',', and before '}' and ']', also one line end and
  // then at most kMostIndent spaces or kMostIndentTabs tabs. Nothing before ':' and ',', and
  // nothing in what is empty.
  kSerialized,
  // Up to kMostJsonSpace characters out of " \t\n\r" anywhere JSON allows it.
  kAny,
};

inline constexpr uint32_t kMostIndent = 64;
inline constexpr uint32_t kMostIndentTabs = 16;
inline constexpr uint32_t kMostJsonSpace = 100;

// A pair of a JSON object.
struct GrammarMember {
  std::string name;  // UTF-8, not escaped
  int32_t value;     // a rule
  bool required = false;
};

// A JSON object from '{' to '}'. Each name has one spelling, JsonSpelling(name).
struct GrammarObject {
  std::vector<GrammarMember> members = {};  // the listed names, each at most once in an object
  std::optional<int32_t> other =
      std::nullopt;  // the rule of the values of all other names; none: no others
  size_t least = 0;  // pairs, listed or not; another name counts each time
  size_t most = std::numeric_limits<size_t>::max();
  bool in_order = false;  // listed names come in the order of `members`, others after them
  JsonSpace space = JsonSpace::kSerialized;
};

// `least` to `most` steps from the first state to one that accepts, each a text of a rule; none of
// these texts is empty. Each text has one way to be read so, or few: a way is what is counted.
struct GrammarChain {
  struct Step {
    int32_t rule;
    uint32_t target;
  };
  struct State {
    bool accepts = false;
    std::vector<Step> steps = {};
  };
  std::vector<State> states;
  size_t least = 0;
  size_t most = std::numeric_limits<size_t>::max();  // this: any number
};

// What a grammar may need at most: states of its automaton, with repetitions written out, bytes of
// its expressions, rules and objects before it is compiled, and expressions within expressions.
inline constexpr size_t kMostGrammarStates = 1000000;
inline constexpr size_t kMostGrammarBytes = size_t{256} << 20;
// Repetitions of characters and of items beyond this are counted (GrammarChain), not written out.
inline constexpr size_t kMostWrittenOut = 1000;
inline constexpr uint32_t kMostExpressionDepth = 200;

struct GrammarExpr {
  enum class Kind {
    kEmpty,
    kNothing,
    kBytes,
    kText,
    kCodePoint,
    kSequence,
    kChoice,
    kRepeat,
    kCall
  };

  Kind kind;
  uint32_t depth = 1;
  uint64_t states = 0;       // what it adds to the automaton at most, and how often it is visited
  std::string text = {};     // kText
  Utf8Machine machine = {};  // kCodePoint; kBytes: a machine with one edge
  std::vector<int32_t> parts = {};  // kSequence, kChoice; one for kRepeat
  uint64_t least = 0, most = 0;     // kRepeat
  int32_t rule = -1;                // kCall
};

inline constexpr uint64_t kUnlimited = std::numeric_limits<uint64_t>::max();

// Either an expression or an object or a chain.
struct GrammarRuleSource {
  std::string name;
  int32_t expr = -1;
  int32_t object = -1;
  int32_t chain = -1;
  // GrammarBuilder::Explain
  std::string why_empty = {};
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_EXPR_H_
