// A grammar as an automaton with calls: what GrammarBuilder::Build makes and Automaton runs.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gemma_like/grammar/chain_rule.h"
#include "gemma_like/grammar/object_rule.h"
#include "gemma_like/grammar/utf8_machine.h"

namespace inlay {

// Rules whose texts may begin with the text of another rule, one in the other, at most. A step of
// the automaton takes up to the third power of this.
inline constexpr size_t kMostLeftCalls = 100;

// Immutable once built. Its states are those of all rules; from each one the end of its rule can be
// reached, and no rule begins with a call of itself.
class Grammar {
 public:
  enum class EdgeKind : uint8_t { kEmpty, kBytes, kCall };

  // Goes to `target` without a byte, with a byte out of sets[label], or after a text of
  // rules[label]. A call of a rule that accepts the empty text is accompanied by an empty edge.
  struct Edge {
    EdgeKind kind;
    uint32_t label;
    uint32_t target;
  };

  // From `start` to `end`, or an object, objects[object], or a chain, chains[chain].
  struct Rule {
    std::string name;
    uint32_t start = 0, end = 0;
    int32_t object = -1;
    int32_t chain = -1;

    bool has_states() const { return object < 0 && chain < 0; }
  };

  size_t states() const { return first_edge.size() - 1; }

  std::vector<Rule> rules;
  std::vector<ObjectRule> objects;
  std::vector<ChainRule> chains;
  std::vector<ByteSet> sets;
  std::vector<Edge> edges;           // by state
  std::vector<uint32_t> first_edge;  // [states + 1]
  std::vector<bool> is_end;          // [states]: the end of a rule
  uint32_t start = 0;                // a rule

  // Bytes that no set and no object tells apart have one class.
  std::array<uint8_t, 256> class_of = {};
  std::vector<uint8_t> representatives;  // a byte of each class
  std::vector<uint16_t> class_sizes;     // how many bytes it has
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_GRAMMAR_H_
