// Writes model files whose matrices are already packed for the kernels.
#ifndef INLAY_GEMMA_LIKE_FILES_PACK_H_
#define INLAY_GEMMA_LIKE_FILES_PACK_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/progress.h"
#include "gemma_like/registry.h"
#include "io/file/atomic_file.h"
#include "io/gguf/gguf.h"
#include "ops/team.h"

namespace inlay {

// Writes `file` packed: the matrices as `team` packs them, all else unchanged. `file` may be packed
// already. `replace` says what may be replaced; see CheckReplace. Errors are those of loading the
// file and of writing. `progress` counts bytes of the file's tensors.
absl::Status WritePacked(const GgufFile& file, Team& team, const std::string& path,
                         Replace replace = Replace::kSameKind, const Progress& progress = nullptr);

// The same for a file of this config, appended to what `out` holds, a multiple of kPackedAlignment
// bytes. Returns `out`, to which more can be appended.
absl::StatusOr<AtomicFile> WritePacked(const GgufFile& file, const ConfigEntry& config, Team& team,
                                       AtomicFile out, const Progress& progress = nullptr);

}  // namespace inlay

#endif  // INLAY_GEMMA_LIKE_FILES_PACK_H_
