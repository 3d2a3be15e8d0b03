#include "serve/http/descriptor_limit.h"

#include <sys/resource.h>

#include <algorithm>

namespace inlay::serve {

size_t MakeRoomForConnections(size_t connections) {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return connections;
  const rlim_t needed = connections + kOtherDescriptors;
  if (limit.rlim_cur < needed) {
    const rlimit raised = {.rlim_cur = std::min(needed, limit.rlim_max),
                           .rlim_max = limit.rlim_max};
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  if (limit.rlim_cur >= needed) return connections;
  const rlim_t others = std::min<rlim_t>(kOtherDescriptors, limit.rlim_cur / 2);
  return std::max<size_t>(limit.rlim_cur - others, 1);
}

}  // namespace inlay::serve
