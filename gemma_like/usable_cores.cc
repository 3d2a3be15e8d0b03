#include "gemma_like/usable_cores.h"

#include <sched.h>

#include <algorithm>
#include <thread>

#include "gemma_like/model/cgroup_limits.h"

namespace inlay {
namespace {

size_t BoundCores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof(cores), &cores) == 0)
    return static_cast<size_t>(CPU_COUNT(&cores));
  return std::thread::hardware_concurrency();
}

}  // namespace

size_t UsableCores(const std::string& root) {
  return std::max<size_t>(1, std::min(BoundCores(), CgroupCores(root)));
}

}  // namespace inlay
