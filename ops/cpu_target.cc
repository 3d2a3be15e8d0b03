#include "ops/cpu_target.h"

#include <cstdint>

#include "hwy/targets.h"
#include "ops/cpu_probes.h"

namespace inlay {
namespace {

// The compiled targets that this CPU has. Taken once, before the first mock by ForceTarget, because
// hwy::SupportedTargets reports the mock.
int64_t Runnable() {
  static const int64_t targets = hwy::SupportedTargets() & CompiledTargetBits();
  return targets;
}

std::vector<std::string> Names(int64_t targets) {
  std::vector<std::string> names;
  // Highway gives better targets lower bits.
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    names.emplace_back(hwy::TargetName(rest & -rest));
  }
  return names;
}

}  // namespace

std::vector<std::string> CompiledTargets() { return Names(CompiledTargetBits()); }

std::vector<std::string> RunnableTargets() { return Names(Runnable()); }

// Asks a kernel that is dispatched like all the others.
std::string ChosenTarget() { return hwy::TargetName(ProbeTargetBit()); }

bool ForceTarget(std::string_view name) {
  const int64_t runnable = Runnable();
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);  // ends the mock
    hwy::GetChosenTarget().Update(runnable);
    return true;
  }
  for (int64_t rest = runnable; rest != 0; rest &= rest - 1) {
    if (name != hwy::TargetName(rest & -rest)) continue;
    // With the targets below it, for kernels that are not compiled for this one.
    hwy::SetSupportedTargetsForTest(rest);
    hwy::GetChosenTarget().Update(rest);
    return true;
  }
  return false;
}

}  // namespace inlay
