// How much memory this process used.
#ifndef INLAY_TOOLS_PROCESS_MEMORY_H_
#define INLAY_TOOLS_PROCESS_MEMORY_H_

#include <cstdint>
#include <optional>

namespace inlay {

// The most bytes that were resident at once, mapped files included, since the start or the last
// ResetPeakMemory(). Nothing if the system does not report it (Linux does).
std::optional<uint64_t> PeakMemory();

// Whether the peak now counts from what is resident at this moment.
bool ResetPeakMemory();

}  // namespace inlay

#endif  // INLAY_TOOLS_PROCESS_MEMORY_H_
