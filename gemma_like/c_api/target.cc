#include "gemma_like/c_api/target.h"

#include <cstddef>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/printable.h"
#include "ops/cpu/cpu_target.h"

namespace inlay::c_api {
namespace {

// Also held while the target changes: nothing begins to use it then.
std::mutex target_mutex;
size_t target_uses = 0;

}  // namespace

TargetUse::TargetUse() {
  const std::lock_guard<std::mutex> lock(target_mutex);
  ++target_uses;
}

TargetUse::~TargetUse() {
  const std::lock_guard<std::mutex> lock(target_mutex);
  --target_uses;
}

absl::Status SetTarget(absl::string_view name) {
  const std::lock_guard<std::mutex> lock(target_mutex);
  if (target_uses > 0) {
    return absl::FailedPreconditionError(
        "there are models, which compute with the instruction set that is chosen: it can be "
        "changed before the first is loaded and after the last is freed");
  }
  if (ForceTarget(std::string(name))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the instruction set ", QuoteForMessage(name),
                                                 " is not one of those that run on this CPU (",
                                                 absl::StrJoin(RunnableTargets(), ", "), ")"));
}

}  // namespace inlay::c_api
