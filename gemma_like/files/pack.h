// Writes model files whose matrices are packed for the kernels already.
#ifndef INLAY_GEMMA_LIKE_FILES_PACK_H_
#define INLAY_GEMMA_LIKE_FILES_PACK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gemma_like/registry.h"
#include "io/file/atomic_file.h"
#include "io/gguf/gguf.h"
#include "ops/team.h"

namespace inlay {

// Writes `file` packed: the matrices as `team` packs them, all else as it is. Goes through for a
// packed file too. `replace` says what may be replaced; see CheckReplace. Errors are those of
// loading the file and of writing.
absl::Status WritePacked(const GgufFile& file, Team& team, const std::string& path,
                         Replace replace = Replace::kSameKind);

// The same, for a file of this config, behind what was written to `out`, a multiple of
// kPackedAlignment bytes, which is given back with its end still open.
absl::StatusOr<AtomicFile> WritePacked(const GgufFile& file, const ConfigEntry& config, Team& team,
                                       AtomicFile out);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_PACK_H_
