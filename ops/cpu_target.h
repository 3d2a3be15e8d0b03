// Which instruction set the kernels run on.
#ifndef INLAY_OPS_CPU_TARGET_H_
#define INLAY_OPS_CPU_TARGET_H_

#include <string>
#include <string_view>
#include <vector>

namespace inlay {

// Names of the instruction sets compiled in, best first.
std::vector<std::string> CompiledTargets();

// Names of the instruction sets compiled in that this CPU can run, best first ("AVX3_ZEN4", "AVX2",
// ...).
std::vector<std::string> RunnableTargets();

// The name of the one that the kernels use now.
std::string ChosenTarget();

// Makes all kernels use the named target from now on; an empty name returns to the best. False, and
// no change, if the name is not among RunnableTargets(). Not to be called while another thread runs
// kernels.
bool ForceTarget(std::string_view name);

}  // namespace inlay

#endif  // INLAY_OPS_CPU_TARGET_H_
