// Where a text stands within one rule, made as texts get there.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_FRAME_TABLE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_FRAME_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/grammar/grammar.h"
#include "gemma_like/grammar/word_lists.h"

namespace inlay {

// A frame is a set of states of the grammar between which no byte has decided yet, or the state of
// an object, or the place in a chain. Equal ones have the same number. The grammar must outlive the
// table.
class FrameTable {
 public:
  using Frame = uint32_t;

  // A rule that may come next, from its first frame, and the frame after it.
  struct Call {
    Frame first;
    Frame after;
  };

  struct Info {
    bool may_end = false;     // the text may be complete here
    bool may_go_on = false;   // or a byte or a call may come
    bool has_states = false;  // it is a set of them
    uint32_t states = 1;      // of the grammar; of an object: what a step costs
    std::optional<std::vector<Call>> calls;
  };

  explicit FrameTable(const Grammar& grammar);

  const Grammar& grammar() const { return grammar_; }

  // Before any text of the rule.
  Frame First(uint32_t rule);

  // After a byte of the class that is no part of a call.
  std::optional<Frame> Step(Frame frame, uint8_t byte_class);

  // Valid until the next call of a function that is not const.
  const Info& operator[](Frame frame) const { return infos_[frame]; }
  const std::vector<Call>& Calls(Frame frame);

  // At both places at once. Both have states.
  Frame Union(Frame a, Frame b);

  // The same frame of another table.
  Frame CopyFrom(const FrameTable& table, Frame frame);

  // How many there are.
  size_t size() const { return infos_.size(); }

  size_t bytes() const { return words_.bytes() + infos_.capacity() * sizeof(Info) + call_bytes_; }

 private:
  // Above the number of any state: the first word of an object's frame, or of a chain's, with its
  // index.
  static constexpr uint32_t kObject = uint32_t{1} << 31, kChain = kObject + (uint32_t{1} << 30);

  bool IsObject(Frame frame) const {
    return words_[frame][0] >= kObject && words_[frame][0] < kChain;
  }
  bool IsChain(Frame frame) const { return words_[frame][0] >= kChain; }
  ObjectRule::State StateOf(Frame frame) const;
  const ObjectRule& ObjectOf(Frame frame) const;
  Frame InternObject(uint32_t object, const ObjectRule::State& state);
  Frame InternChain(uint32_t chain, const ChainRule::Place& place);

  // Closure: adds states to `found_` with all that empty edges lead to.
  void Add(uint32_t state);
  Frame InternFound();
  Frame Intern(absl::Span<const uint32_t> words);
  std::vector<Call> FindCalls(Frame frame);
  std::vector<Call> FindChainCalls(Frame frame);

  const Grammar& grammar_;
  // By frame: states, ascending, or kObject + index and the state of the object, or kChain + index
  // and the place as three words.
  WordLists words_;
  std::vector<Info> infos_;
  std::vector<std::optional<Frame>> first_;  // by rule
  size_t call_bytes_ = 0;

  std::vector<uint32_t> found_, open_;
  std::vector<uint32_t> seen_in_;  // by state: the closure that it was added to last
  uint32_t closure_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_FRAME_TABLE_H_
