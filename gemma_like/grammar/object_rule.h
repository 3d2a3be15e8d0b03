// A JSON object as an automaton: which bytes may come next after the pairs so far.
#ifndef INLAY_GEMMA_LIKE_GRAMMAR_OBJECT_RULE_H_
#define INLAY_GEMMA_LIKE_GRAMMAR_OBJECT_RULE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemma_like/grammar/grammar_expr.h"
#include "gemma_like/grammar/json_spelling.h"

namespace inlay {

// Deterministic but for the values, which are calls of rules: a state says all that matters of the
// pairs so far, so that objects whose pairs come in any order need no choice between orders.
class ObjectRule {
 public:
  // As words, so that equal states have equal words and other code can store them.
  using State = std::vector<uint32_t>;

  // A call of the rule of a value, and the state after it.
  struct Value {
    int32_t rule;
    State after;
  };

  // InvalidArgument if a name is listed twice.
  static absl::StatusOr<ObjectRule> Create(GrammarObject object);

  const GrammarObject& object() const { return object_; }

  // The nodes of the trie of the listed names.
  size_t nodes() const { return nodes_.size(); }

  // Whether any object can be written if `usable` of the listed names have values that can be,
  // all required ones among them, and others have one or not.
  bool IsProductive(size_t usable, bool other) const;

  // Tells which values can be written at all, by rule; names without a value are left out. To be
  // called once, before Start, if IsProductive.
  void SetProductive(const std::vector<bool>& rules);

  // Appends the sets of bytes that Step distinguishes.
  void AppendByteSets(std::vector<ByteSet>* sets) const;

  // States are such that the object can be finished. Step returns none where it could not.
  State Start() const;
  std::optional<State> Step(const State& state, uint8_t byte) const;
  std::optional<Value> Call(const State& state) const;
  static bool IsDone(const State& state) { return state[0] == kDone; }

 private:
  enum Phase : uint32_t {
    kOpen,        // before '{'
    kFirst,       // after '{'
    kName,        // between the quotes of a name
    kColon,       // after a name
    kValue,       // after ':'
    kAfterValue,  // after a value
    kNext,        // after ','
    kDone,        // after '}'
  };

  // A state: these words, then the listed names that were seen: a bit each, or with in_order one
  // word, the first member that may still come. kMissing and kAvailable are those of Progress,
  // which would take long to count for each byte; with in_order they are 0.
  enum Word { kPhase, kPosition, kSpaces, kPairsLow, kPairsHigh, kMissing, kAvailable, kSeen };

  // kSpaces with JsonSpace::kAny: how many characters of white space there are. With kSerialized:
  // 0, or one of these, kLineEnd plus the number of spaces after it, or kTabs plus that of tabs.
  enum SerializedSpace : uint32_t { kOneSpace = 1, kLineEnd = 2, kTabs = kLineEnd + kMostIndent };

  // kPosition in kName: a node, or kUnlisted + JsonSpellingReader::State. In kColon and kValue: a
  // member, or kUnlisted. Otherwise 0.
  static constexpr uint32_t kUnlisted = uint32_t{1} << 31;

  // A prefix of listed names' spellings.
  struct Node {
    uint8_t byte = 0;
    JsonSpellingReader::State within = JsonSpellingReader::kBetween;
    uint32_t first = 0, last = 0;     // the names with this prefix: by_name_[first, last)
    uint32_t sibling = 0, child = 0;  // 0: none
    std::optional<uint32_t> member = std::nullopt;  // whose whole name this is
  };

  // How far the pairs so far have come.
  struct Progress {
    uint64_t pairs;
    uint64_t missing;    // required names that have not come
    uint64_t available;  // listed names that may still come, required or not
  };

  explicit ObjectRule(GrammarObject object) : object_(std::move(object)) {}

  uint32_t members() const { return static_cast<uint32_t>(object_.members.size()); }
  absl::Status MakeTrie();
  uint32_t AddChild(uint32_t node, uint8_t byte, uint32_t name);

  // `member` may be kUnlisted: a name that is not listed.
  bool Seen(const State& state, uint32_t member) const;
  Progress ProgressOf(const State& state) const;
  Progress After(Progress progress, uint32_t member) const;
  bool CanFinish(const Progress& progress) const;
  bool MayCome(const State& state, const Progress& progress, uint32_t member) const;
  // Whether one of by_name_[first, last) or, where such are possible, another name may come.
  bool AnyMayCome(const State& state, uint32_t first, uint32_t last) const;
  bool MayClose(const State& state) const;

  std::optional<State> StepBetween(const State& state, uint8_t byte) const;
  std::optional<State> StepSpace(const State& state, uint8_t byte) const;
  // Whether there may be white space in the phase, given what has come.
  bool MayHaveSpace(const State& state) const;
  std::optional<State> StepName(const State& state, uint8_t byte) const;
  std::optional<State> EndName(const State& state, uint32_t member) const;

  GrammarObject object_;
  std::vector<uint32_t> by_name_;  // members, in the order of their spellings
  std::vector<Node> nodes_;        // the first is the empty prefix
  std::vector<bool> usable_;       // by member: it has a value
  bool other_ = false;             // other names have one
  // By member, and for the end: how many from there on are required, and usable.
  std::vector<uint64_t> required_from_, usable_from_;
  size_t required_ = 0;
};

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_GRAMMAR_OBJECT_RULE_H_
