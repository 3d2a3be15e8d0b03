// The instruction set that the models of the C API compute with: one for the whole process.
#ifndef INLAY_GEMMA_LIKE_C_API_TARGET_H_
#define INLAY_GEMMA_LIKE_C_API_TARGET_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace inlay::c_api {

// While there is one, the instruction set stays: a model has it from before it is loaded until it
// computes no more.
class TargetUse {
 public:
  TargetUse();
  ~TargetUse();
  TargetUse(const TargetUse&) = delete;
  TargetUse& operator=(const TargetUse&) = delete;
};

// Chooses the instruction set of this name, "" for the best. InvalidArgument when the CPU lacks it,
// FailedPrecondition while it is in use.
absl::Status SetTarget(absl::string_view name);

}  // namespace inlay::c_api

#endif  // INLAY_GEMMA_LIKE_C_API_TARGET_H_
