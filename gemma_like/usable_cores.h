// How many threads are worth their cores.
#ifndef INLAY_GEMMA_LIKE_USABLE_CORES_H_
#define INLAY_GEMMA_LIKE_USABLE_CORES_H_

#include <cstddef>
#include <string>

namespace inlay {

// The cores that this process may use, at least one, where a core with several hardware threads
// counts as many: no more than it is bound to, as by taskset,
// and than its control groups give it the time of, as in a container
// (gemma_like/model/cgroup_limits.h, which says what `root` is).
size_t UsableCores(const std::string& root = "/");

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_USABLE_CORES_H_
