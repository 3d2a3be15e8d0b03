// The variable `loop`: where a for loop is.
#ifndef INLAY_IO_TEMPLATE_LOOP_H_
#define INLAY_IO_TEMPLATE_LOOP_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "io/template/value.h"

namespace inlay::jinja {

// As Jinja does, a loop asks for the next item only when it is needed: the condition of a loop may
// depend on what its body has set.
class LoopRep {
 public:
  using Accept = std::function<absl::StatusOr<bool>(const Value& item)>;

  // `accept` is the loop's condition, or empty. `depth` counts recursive loops from 1.
  LoopRep(std::shared_ptr<const SequenceRep> items, Accept accept, int depth)
      : items_(std::move(items)), accept_(std::move(accept)), depth_(depth) {}

  // Goes to the next item; false when there is none.
  absl::StatusOr<bool> Next();
  const Value& current() const { return current_; }
  // How many items were gone through before the current one.
  int64_t index0() const { return index0_; }
  int depth() const { return depth_; }

  // All items, those to come included.
  absl::StatusOr<int64_t> Length();
  // loop.NAME; undefined when there is none.
  absl::StatusOr<Value> Attribute(const std::string& name);
  // What loop.changed was called with last, null before; nothing is remembered of a loop that is
  // over.
  const Values* remembered() const { return has_remembered_ ? &remembered_ : nullptr; }
  void Remember(Values values);

  // When the loop is over: lets go of all items, so that no circle of references stays, and is no
  // longer active.
  void End();
  bool active() const { return active_; }

 private:
  // Makes the item after the current one known; false when there is none.
  absl::StatusOr<bool> Peek();

  std::shared_ptr<const SequenceRep> items_;
  size_t next_ = 0;  // items before it were accepted or not
  Accept accept_;
  int depth_;
  Value before_, current_;
  std::vector<Value> ahead_;  // accepted items after the current one, in reverse order
  int64_t index0_ = -1;
  int64_t length_ = -1;  // -1: not known yet
  bool has_remembered_ = false;
  Values remembered_;
  bool active_ = true;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_LOOP_H_
