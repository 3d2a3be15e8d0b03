// Runs a grammar over bytes: a pushdown automaton whose deterministic states are made as texts get
// there, and kept.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_AUTOMATON_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_AUTOMATON_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"
#include "gemma_like/grammar/frame_table.h"
#include "gemma_like/grammar/grammar.h"
#include "gemma_like/grammar/word_lists.h"

namespace inlay {

// A configuration is the set of all ways to read a text so far: groups of a frame and a stack of
// the frames that follow when it ends. Equal ones have the same number. It says all that matters of
// the text, and every configuration can be continued to a whole text of the grammar.
//
// Not thread-safe; a const object is. The grammar must outlive it.
class Automaton {
 public:
  using Frame = FrameTable::Frame;
  using Config = uint32_t;
  using Node = uint32_t;

  static constexpr Config kDead = std::numeric_limits<Config>::max();
  // More than kMostGroups groups or kMostStates states of the grammar, or more than kMostStepWork
  // steps within frames, groups and nodes on the way there.
  static constexpr Config kTooMany = kDead - 1;
  static constexpr size_t kMostGroups = 1000;
  static constexpr size_t kMostStates = 100000;
  static constexpr size_t kMostStepWork = 1000000;

  // Stacks: nothing follows, or it is not known what follows.
  static constexpr Node kBottom = 0;
  static constexpr Node kOpen = 1;

  struct Group {
    Node node;
    Frame frame;
    bool operator==(const Group&) const = default;
    auto operator<=>(const Group&) const = default;
  };

  explicit Automaton(const Grammar& grammar);

  const Grammar& grammar() const { return grammar_; }

  // Before any text.
  Config Start();

  // After a byte of the class; kDead when no text goes on so, or kTooMany.
  Config Step(Config config, uint8_t byte_class) {
    const Info& info = t_->infos[config];
    if (info.row != kNone) {
      const Config next = RowOf(info.row)[byte_class];
      if (next != kNone) return next;
    } else if (info.first_next != kNone && info.first_class == byte_class) {
      return info.first_next;
    }
    return FindStep(config, byte_class);
  }

  // Whether the text is complete; whether it may go on.
  bool CanEnd(Config config) const { return t_->infos[config].can_end; }
  bool MayGoOn(Config config) const { return t_->infos[config].may_go_on; }

  // How many states of the grammar it has: what a step costs at least.
  size_t StatesOf(Config config) const { return t_->infos[config].states; }

  // What Step with the same arguments has cost beyond that, in groups and nodes: of rules that
  // begin with many others there may be much that leads to few states, or to none. 0 up to
  // kMostLightWork. It does not depend on what was made before.
  size_t HeavyWorkOf(Config config, uint8_t byte_class) const {
    if (!t_->infos[config].is_heavy) return 0;
    const auto found = t_->heavy.find(StepKey(config, byte_class));
    return found == t_->heavy.end() ? 0 : found->second;
  }
  static constexpr size_t kMostLightWork = 256;

  std::vector<Group> Groups(Config config) const;

  // One group alone, which was in a configuration or is over kOpen.
  Config Only(Group group) { return Intern({&group, 1}); }

  // Whether some group over kOpen may end: what comes then is not in the configuration.
  bool MayLeave(Config config) const { return t_->infos[config].may_leave; }

  // After the end of a frame over `node`, which is neither kBottom nor kOpen.
  Config Leave(Node node);

  // What everything that was made so far takes.
  size_t bytes() const;

  // Changes with every Compact and Clear, as the numbers of configurations, frames and nodes do.
  uint64_t epoch() const { return epoch_; }

  // Forgets everything, in whatever state std::bad_alloc left it.
  void Clear() {
    t_ = std::make_unique<Tables>(grammar_);
    ++epoch_;
  }

  // Forgets all but these configurations, whose numbers change. The order of their groups stays.
  void Compact(absl::Span<Config* const> configs);

 private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max() - 2;

  struct Info {
    // The first step that was found; once there is another one, all are in a row.
    Config first_next = kNone;
    uint8_t first_class = 0;
    uint32_t row = kNone;
    uint32_t states = 0;
    bool can_end = false, may_go_on = false, may_leave = false;
    bool is_heavy = false;  // some step has heavy work
  };

  // All that is made on the way.
  struct Tables {
    explicit Tables(const Grammar& grammar) : frames(grammar) {}

    FrameTable frames;
    WordLists nodes;          // by node - 2: the frame that follows, and the node below
    WordLists configs;        // node, frame, node, frame, ..., ascending
    std::vector<Info> infos;  // by config
    // [kBlock rows][classes] each: the next config; kNone: not known. In blocks, since one list
    // would be copied whole where it grows.
    std::vector<std::vector<Config>> rows;
    uint32_t next_row = 0;
    std::unordered_map<uint64_t, uint32_t> heavy;  // work beyond kMostLightWork, by StepKey
  };

  static uint64_t StepKey(Config config, uint8_t byte_class) {
    return uint64_t{config} << 8 | byte_class;
  }

  static constexpr uint32_t kBlock = 64;
  Config* RowOf(uint32_t row) {
    return t_->rows[row / kBlock].data() + size_t{row % kBlock} * classes_;
  }
  uint32_t NewRow();

  Node MakeNode(Frame after, Node below);
  Frame AfterOf(Node node) const { return t_->nodes[node - 2][0]; }
  Node BelowOf(Node node) const { return t_->nodes[node - 2][1]; }

  // What a step finds, before Normalize.
  struct Found {
    std::vector<Group> groups;
    size_t work = 0;    // steps within frames, groups, and nodes below them that were made
    size_t within = 0;  // the most that one of these steps took itself
  };

  // `node`, made over kOpen, over another one. Adds the nodes that it makes to `work`.
  Node Rebase(Node node, Node onto, size_t* work);

  Config FindStep(Config config, uint8_t byte_class);
  // Add the groups after the byte; false: too many.
  bool StepGroups(Config config, uint8_t byte_class, Found* next);
  bool StepFrame(Frame frame, uint8_t byte_class, Found* next);
  bool AppendStep(Frame frame, uint8_t byte_class, Node onto, Found* next);

  // Adds what follows where frames may end, and merges what has the same stack.
  Config Normalize(std::vector<Group> groups);
  void MergeFrames(std::vector<Frame>* frames);
  Config Intern(absl::Span<const Group> groups);

  const Grammar& grammar_;
  uint32_t classes_;
  std::unique_ptr<Tables> t_;
  uint64_t epoch_ = 1;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_AUTOMATON_H_
