// What the system tells of this process, for /metrics.
#ifndef INLAY_SERVE_SERVICE_PROCESS_FIGURES_H_
#define INLAY_SERVE_SERVICE_PROCESS_FIGURES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace inlay::serve {

// The bytes that are resident now, mapped files included; none where the system does not tell.
std::optional<uint64_t> ResidentMemory();

// When the process was started, to a hundredth of a second; none where the system does not tell, as
// with --sandbox.
std::optional<absl::Time> ProcessStart();

}  // namespace inlay::serve

#endif  // INLAY_SERVE_SERVICE_PROCESS_FIGURES_H_
