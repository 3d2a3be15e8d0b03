// Counts what rendering uses, and says when it is too much.
#ifndef INLAY_IO_TEMPLATE_BUDGET_H_
#define INLAY_IO_TEMPLATE_BUDGET_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "io/template/limits.h"

namespace inlay::jinja {

class Budget {
 public:
  explicit Budget(const Limits& limits) : limits_(limits) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Counts `steps`. OutOfRange when they or the bytes that exist are beyond the limits,
  // InvalidArgument for a value that is too deep.
  // Values are made first and counted here at the next step; what makes one much larger than what
  // it is made of calls Reserve before.
  absl::Status Step(uint64_t steps = 1) {
    if (steps > limits_.max_steps - steps_) return TooManySteps();
    steps_ += steps;
    if (bytes_ > limits_.max_bytes) return TooManyBytes();
    return too_deep_ ? TooDeep() : absl::OkStatus();
  }
  // The steps of going through so many bytes.
  absl::Status StepBytes(size_t bytes) { return Step(bytes / 64 + 1); }

  // OutOfRange when so many more bytes would be too many.
  absl::Status CheckBytes(size_t more) const {
    if (bytes_ > limits_.max_bytes || more > limits_.max_bytes - bytes_) return TooManyBytes();
    return absl::OkStatus();
  }
  // Before so many bytes are filled: CheckBytes and StepBytes.
  absl::Status Reserve(size_t bytes) {
    if (absl::Status status = CheckBytes(bytes); !status.ok()) return status;
    return StepBytes(bytes);
  }

  // Values say that they exist and that they no longer do, and when one is too deep.
  void Take(size_t bytes) { bytes_ += bytes; }
  void Return(size_t bytes) { bytes_ -= bytes; }
  void SetTooDeep() { too_deep_ = true; }

  // Around each level of recursion; InvalidArgument when it is one too many.
  absl::Status Enter() {
    ++depth_;
    return depth_ > limits_.max_depth ? TooDeep() : absl::OkStatus();
  }
  void Leave() { --depth_; }

  uint64_t steps() const { return steps_; }
  size_t bytes() const { return bytes_; }

 private:
  absl::Status TooManySteps() const;
  absl::Status TooManyBytes() const;
  absl::Status TooDeep() const;

  const Limits limits_;
  uint64_t steps_ = 0;
  size_t bytes_ = 0;
  int depth_ = 0;
  bool too_deep_ = false;
};

// One level of recursion: Enter when made (`status` says whether that is one too many), Leave at
// the end.
class DepthGuard {
 public:
  explicit DepthGuard(Budget& budget) : status(budget.Enter()), budget_(budget) {}
  ~DepthGuard() { budget_.Leave(); }
  DepthGuard(const DepthGuard&) = delete;
  DepthGuard& operator=(const DepthGuard&) = delete;

  const absl::Status status;

 private:
  Budget& budget_;
};

// The bytes of one value, as long as it exists. Inputs and constants have no budget.
class Charge {
 public:
  Charge(Budget* budget, size_t bytes) : budget_(budget), bytes_(bytes) {
    if (budget_ != nullptr) budget_->Take(bytes_);
  }
  ~Charge() {
    if (budget_ != nullptr) budget_->Return(bytes_);
  }
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  Budget* budget_;
  size_t bytes_;
};

}  // namespace inlay::jinja

#endif  // INLAY_IO_TEMPLATE_BUDGET_H_
