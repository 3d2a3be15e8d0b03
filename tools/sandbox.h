// For untrusted model files: the process gives up all rights that it does not need to run one.
#ifndef INLAY_TOOLS_SANDBOX_H_
#define INLAY_TOOLS_SANDBOX_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace inlay {

enum class SandboxNetwork {
  kNone,
  kServes,  // connections may be accepted, but none made
};

// From this call on, for this process, all its threads and any code that gains control of it: no
// network, no file created, changed, renamed or removed, no other program started, no other process
// inspected or signalled. seccomp refuses everything but the system calls that computing, reading
// and terminal input and output need; where the kernel has Landlock, files outside of `readable`
// (files or folders), of the system's libraries and locales and of a few of its settings cannot be
// read either. Files that are already open stay open.
//
// It cannot be undone, and a second call changes nothing. Call it before threads start: it applies
// to all that are started later. Unimplemented where the system cannot enforce it: then nothing has
// changed.
absl::Status EnterSandbox(const std::vector<std::string>& readable,
                          SandboxNetwork network = SandboxNetwork::kNone);

}  // namespace inlay

#endif  // INLAY_TOOLS_SANDBOX_H_
