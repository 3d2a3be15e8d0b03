// For models that nobody vouches for: the process gives up what it does not need to run one.
#ifndef INLAY_TOOLS_SANDBOX_H_
#define INLAY_TOOLS_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace inlay {

// From here on, for this process, all its threads and whatever may take it over: no network, no
// file created, changed, renamed or removed, no other program started, no other process looked into
// or signalled. seccomp refuses everything but the system calls that computing, reading and talking
// to a terminal take; where the kernel has Landlock, files outside of `readable` (files or folders)
// and of the system's libraries and locales cannot be read either. What is open already stays open.
//
// There is no way back. Call it before threads start: it holds for those that come after.
// Unimplemented where the system cannot enforce it: then nothing has changed.
absl::Status EnterSandbox(const std::vector<std::string>& readable);

}  // namespace inlay

#endif  // INLAY_TOOLS_SANDBOX_H_
