#include "ops/cpu_target.h"

#include <cstdint>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/cpu_target.cc"
#include "hwy/foreach_target.h"
// After foreach_target.h, as Highway asks.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace inlay {
namespace HWY_NAMESPACE {

int64_t ThisTarget() { return HWY_TARGET; }

}  // namespace HWY_NAMESPACE
}  // namespace inlay
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace inlay {
namespace {

HWY_EXPORT(ThisTarget);

// The compiled targets that this CPU has. Taken once, before the first mock by ForceTarget, because
// hwy::SupportedTargets reports the mock.
int64_t Runnable() {
  static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
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

std::vector<std::string> CompiledTargets() { return Names(HWY_TARGETS); }

std::vector<std::string> RunnableTargets() { return Names(Runnable()); }

std::string ChosenTarget() {
  // Asks a kernel that is dispatched like all the others.
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(ThisTarget)());
}

bool ForceTarget(std::string_view name) {
  const int64_t runnable = Runnable();
  int64_t chosen = name.empty() ? runnable : 0;
  for (int64_t rest = runnable; rest != 0 && chosen == 0; rest &= rest - 1) {
    const int64_t target = rest & -rest;
    if (name == hwy::TargetName(target)) chosen = target;
  }
  if (chosen == 0) return false;
  // Zero ends the mock.
  hwy::SetSupportedTargetsForTest(name.empty() ? 0 : chosen);
  hwy::GetChosenTarget().Update(chosen);
  return true;
}

}  // namespace inlay
#endif  // HWY_ONCE
